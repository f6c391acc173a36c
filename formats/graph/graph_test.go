package graph_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"gm/formats/column/columntest"
	"gm/formats/graph"
)

var goodMeta = graph.Meta{
	Name: "opt13b", Device: "H200", Capacity: 1 << 37, Operators: 3, Tensors: 2, ComputeNS: 600, PlainPeak: 4096,
	Complete: true, Order: "lpmf", LowerBound: 2048, Source: graph.SourceRecorded, Host: "gpu1", PID: 7, Rank: 1, LocalRank: 1, WorldSize: 8, Command: "python train.py",
}

// good is a graph of three operators: the first writes tensors 1 and 0, the latter recomputed from the former; the others read both. The last
// one changes tensor 1, has a state and an option, and was the first in another order. Tensor 0 may be written over tensor 1.
func good(code func(string) int32) []graph.Row {
	op := func(i int64, phase graph.Phase) graph.Row {
		r := graph.NewRow(graph.KindOp, i, phase)
		r.Name, r.Type, r.Layer, r.DurationNS, r.BaseBytes = code("op"), code("linear"), int32(i), 100*i, 1000
		return r
	}
	made := func(id int64) graph.Row {
		r := graph.NewRow(graph.KindTensor, 0, graph.Forward)
		r.Tensor, r.Name, r.Bytes, r.RecomputeNS, r.Role, r.Layer = id, code("t"), 512+id, 50, code("inner"), 2
		r.Saved, r.Version, r.DType, r.Shape = int32(id), 3, code("bfloat16"), code("[2, 128]")
		return r
	}
	about := func(kind graph.Kind, at, tensor, input int64, phase graph.Phase) graph.Row {
		r := graph.NewRow(kind, at, phase)
		r.Tensor, r.Input = tensor, input
		return r
	}
	last, option := op(2, graph.Backward), graph.NewRow(graph.KindOption, 2, graph.Backward)
	last.Origin = 0
	option.Name, option.Bytes, option.DurationNS = code("fft"), 4096, 70
	reads, changes := about(graph.KindReads, 2, -1, -1, graph.Backward), about(graph.KindChanges, 2, -1, -1, graph.Backward)
	reads.Name, changes.Name = code("parameter"), code("random")
	return []graph.Row{
		op(0, graph.Forward), made(1), made(0), about(graph.KindFrom, 0, 0, 1, graph.Forward),
		op(1, graph.Forward), about(graph.KindUse, 1, 1, -1, graph.Forward),
		last, about(graph.KindUse, 2, 0, -1, graph.Backward), about(graph.KindUse, 2, 1, -1, graph.Backward),
		reads, changes, about(graph.KindChanges, 2, 1, -1, graph.Backward), option,
	}
}

// inPlace is a graph of two operators, in which the second writes tensor 1, which may take the place of tensor 0.
func inPlace() []graph.Row {
	row := func(kind graph.Kind, at, tensor, input, bytes int64) graph.Row {
		r := graph.NewRow(kind, at, graph.Forward)
		r.Tensor, r.Input, r.Bytes = tensor, input, bytes
		return r
	}
	return []graph.Row{
		row(graph.KindOp, 0, -1, -1, 0), row(graph.KindTensor, 0, 0, -1, 8), row(graph.KindOp, 1, -1, -1, 0), row(graph.KindTensor, 1, 1, -1, 8),
		row(graph.KindUse, 1, 0, -1, 0), row(graph.KindUse, 1, 1, -1, 0), row(graph.KindInPlace, 1, 1, 0, 0),
	}
}

func TestInPlace(t *testing.T) {
	meta := graph.Meta{Operators: 2, Tensors: 2}
	for want, change := range map[string]func(*graph.Row){
		"": func(*graph.Row) {},
		"row 6: inplace of tensor 0, which operator 0 writes":                     func(r *graph.Row) { r.Tensor, r.Input = 0, 1 },
		"row 6: tensor 1 in the place of tensor 1, which operator 1 does not use": func(r *graph.Row) { r.Input = 1 },
		"row 6: tensor 1 in the place of tensor 9, which operator 1 does not use": func(r *graph.Row) { r.Input = 9 },
		"row 6: tensor 2 of 2": func(r *graph.Row) { r.Tensor = 2 },
	} {
		rows := inPlace()
		change(&rows[6])
		if got := message(check(meta, rows)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rows := inPlace()
	rows = append(rows[:4], rows[6], rows[4], rows[5])
	if got, want := message(check(meta, rows)), "row 4: tensor 1 in the place of tensor 0, which operator 1 does not use"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func batch(rows []graph.Row) *graph.Batch {
	b := &graph.Batch{}
	for _, r := range rows {
		b.Append(r)
	}
	return b
}

// encode writes the good graph as a file.
func encode(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := graph.NewWriter(&out, goodMeta)
	if err := w.Write(batch(good(w.Strings().Code))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(file []byte) (*graph.Reader, error) {
	return graph.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
}

func TestRoundTrip(t *testing.T) {
	r, err := open(encode(t))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Meta(), goodMeta) {
		t.Errorf("metadata\n%+v, want\n%+v", r.Meta(), goodMeta)
	}
	want := good(r.Strings().Code) // strings of a file keep their order, and so their codes
	var got []graph.Row
	if err := graph.Each(r, func(row *graph.Row) error { got = append(got, *row); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
	b := batch(want)
	if b.Reset(); b.Len() != 0 {
		t.Errorf("%d rows after Reset", b.Len())
	}
}

func TestRules(t *testing.T) {
	const far = 1 << 62
	for name, c := range map[string]struct {
		row    int // of the good graph
		change func(*graph.Row)
		want   string
	}{
		"good":                 {0, func(*graph.Row) {}, ""},
		"kind":                 {4, func(r *graph.Row) { r.Kind = 8 }, "row 4: unknown kind 8"},
		"phase":                {4, func(r *graph.Row) { r.Phase = -1 }, "row 4: unknown phase -1"},
		"other kind's column":  {5, func(r *graph.Row) { r.Bytes = 1 }, "row 5: a row of kind use has values in columns of other kinds"},
		"operator with tensor": {4, func(r *graph.Row) { r.Tensor = 0 }, "row 4: a row of kind op has values in columns of other kinds"},
		"tensor first":         {0, func(r *graph.Row) { *r = graph.NewRow(graph.KindTensor, 0, 0) }, "row 0: a row of kind tensor before the first operator"},
		"operator left out":    {4, func(r *graph.Row) { r.Operator = 2 }, "row 4: operator 2, expected 1"},
		"operator negative":    {0, func(r *graph.Row) { r.Operator = -1 }, "row 0: operator -1, expected 0"},
		"other operator's row": {5, func(r *graph.Row) { r.Operator = 0 }, "row 5: operator 0, expected 1 as in the row above"},
		"phase goes back":      {0, func(r *graph.Row) { r.Phase = graph.Update }, "row 1: phase forward at an operator of phase update"},
		"phase of an op":       {4, func(r *graph.Row) { r.Phase = graph.Update }, "row 5: phase forward at an operator of phase update"},
		"layer":                {0, func(r *graph.Row) { r.Layer = -2 }, "row 0: layer -2"},
		"duration":             {4, func(r *graph.Row) { r.DurationNS = -1 }, "row 4: duration of -1 ns"},
		"duration 2^62":        {4, func(r *graph.Row) { r.DurationNS = far }, "row 4: duration of 4611686018427387904 ns"},
		"duration of all":      {4, func(r *graph.Row) { r.DurationNS = graph.MaxNS }, "row 6: the operators take more than 3600000000000000 ns"},
		"base":                 {4, func(r *graph.Row) { r.BaseBytes = far }, "row 4: 4611686018427387904 bytes besides the tensors"},
		"tensor negative":      {1, func(r *graph.Row) { r.Tensor = -1 }, "row 1: tensor -1 of 2"},
		"tensor too many":      {1, func(r *graph.Row) { r.Tensor = 2 }, "row 1: tensor 2 of 2"},
		"tensor twice":         {2, func(r *graph.Row) { r.Tensor = 1 }, "row 2: tensor 1 is written by operator 0 already"},
		"size 0":               {1, func(r *graph.Row) { r.Bytes = 0 }, "row 1: tensor of 0 bytes"},
		"size 2^62":            {1, func(r *graph.Row) { r.Bytes = far }, "row 1: tensor of 4611686018427387904 bytes"},
		"layer of a tensor":    {1, func(r *graph.Row) { r.Layer = -2 }, "row 1: layer -2"},
		"origin":               {6, func(r *graph.Row) { r.Origin = -2 }, "row 6: origin -2"},
		"origin 2^62":          {6, func(r *graph.Row) { r.Origin = far }, "row 6: origin 4611686018427387904"},
		"origin of a use":      {7, func(r *graph.Row) { r.Origin = 1 }, "row 7: a row of kind use has values in columns of other kinds"},
		"no state":             {9, func(r *graph.Row) { r.Name = 0 }, "row 9: reads without the name of a state"},
		"reads a tensor":       {9, func(r *graph.Row) { r.Tensor = 1 }, "row 9: a row of kind reads has values in columns of other kinds"},
		"changes nothing":      {10, func(r *graph.Row) { r.Name = 0 }, "row 10: changes without the name of a state"},
		"changes of -2":        {10, func(r *graph.Row) { r.Tensor = -2 }, "row 10: changes of tensor -2"},
		"changes too many":     {11, func(r *graph.Row) { r.Tensor = 2 }, "row 11: tensor 2 of 2"},
		"changes both":         {11, func(r *graph.Row) { r.Name = 1 }, "row 11: changes of tensor 1 and of a state in one row"},
		"changes unused":       {5, func(r *graph.Row) { r.Kind = graph.KindChanges }, "row 5: changes of tensor 1, which operator 1 does not use"},
		"option without name":  {12, func(r *graph.Row) { r.Name = 0 }, "row 12: option without a name"},
		"option's workspace":   {12, func(r *graph.Row) { r.Bytes = -1 }, "row 12: workspace of -1 bytes"},
		"option's time":        {12, func(r *graph.Row) { r.DurationNS = far }, "row 12: duration of 4611686018427387904 ns"},
		"rows":                 {1, func(r *graph.Row) { r.RowBytes = 500 }, "row 1: rows of 500 bytes in 513"},
		"recompute":            {1, func(r *graph.Row) { r.RecomputeNS = -5 }, "row 1: recomputed in -5 ns"},
		"saved":                {1, func(r *graph.Row) { r.Saved = -2 }, "row 1: saved as number -2"},
		"version":              {1, func(r *graph.Row) { r.Version = -1 }, "row 1: version -1"},
		"use before":           {1, func(r *graph.Row) { *r = graph.NewRow(graph.KindUse, 0, 0); r.Tensor = 1 }, "row 1: use of tensor 1, which is not written yet"},
		"used twice":           {8, func(r *graph.Row) { r.Tensor = 0 }, "row 8: second use of tensor 0 by operator 2"},
		"from elsewhere":       {5, func(r *graph.Row) { r.Kind, r.Input = graph.KindFrom, 0 }, "row 5: from of tensor 1, which operator 0 writes"},
		"from itself":          {3, func(r *graph.Row) { r.Input = 0 }, "row 3: tensor 0 is recomputed from tensor 0, which is not written before it"},
		"from nothing":         {3, func(r *graph.Row) { r.Input = far }, "row 3: tensor 0 is recomputed from tensor 4611686018427387904, which is not written before it"},
		"from negative":        {3, func(r *graph.Row) { r.Input = -1 }, "row 3: tensor 0 is recomputed from tensor -1, which is not written before it"},
		"from of nothing":      {2, func(r *graph.Row) { *r = graph.NewRow(graph.KindUse, 0, 0); r.Tensor = 1 }, "row 3: from of tensor 0, which is not written yet"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := good(func(string) int32 { return 1 })
			c.change(&rows[c.row])
			if got := message(check(goodMeta, rows)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// check checks rows to the end.
func check(meta graph.Meta, rows []graph.Row) error {
	v, err := graph.NewValidator(&meta)
	if err != nil {
		return err
	}
	if err := v.Check(batch(rows)); err != nil {
		return err
	}
	return v.Close()
}

// TestEndRules truncates the good graph, or changes its metadata.
func TestEndRules(t *testing.T) {
	rows := good(func(string) int32 { return 1 })
	for name, c := range map[string]struct {
		rows               int
		operators, tensors int64
		want               string
	}{
		"whole":          {13, 3, 2, ""},
		"operators less": {6, 3, 2, "2 operators, 3 according to its metadata"},
		"too many":       {13, 2, 2, "row 6: operator 2 of 2"},
		"tensors less":   {13, 3, 3, "2 tensors, 3 according to its metadata"},
		"empty":          {0, 0, 0, ""},
		"beyond":         {13, 3, 1 << 40, "1099511627776 tensors, expected 0 to 2097152"},
		"negative":       {13, -3, 2, "-3 operators, expected 0 to 2097152"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := goodMeta
			meta.Operators, meta.Tensors = c.operators, c.tensors
			if got := message(check(meta, rows[:c.rows])); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	w := graph.NewWriter(io.Discard, goodMeta)
	w.Meta().Operators++
	if got, want := message(w.Close()), "write graph: operators or tensors changed after rows were checked against them"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The bounds of sizes and numbers apply to the whole graph.
func TestSums(t *testing.T) {
	meta := graph.Meta{Operators: 1, Tensors: graph.MaxRows}
	v, err := graph.NewValidator(&meta)
	if err != nil {
		t.Fatal(err)
	}
	rows := []graph.Row{graph.NewRow(graph.KindOp, 0, graph.Forward)}
	for id := range int64(graph.MaxTotal/graph.MaxBytes + 1) {
		r := graph.NewRow(graph.KindTensor, 0, graph.Forward)
		r.Tensor, r.Bytes = id, graph.MaxBytes
		rows = append(rows, r)
	}
	if got, want := message(v.Check(batch(rows))), "row 1025: the tensors have more than 1152921504606846976 bytes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for want, change := range map[string]func(*graph.Row){
		"row 2049: the tensors have more than 1152921504606846976 bytes, counted once per use": func(r *graph.Row) { r.Bytes = graph.MaxBytes },
		"row 643: recomputing the tensors once per use takes more than 1152921504606846976 ns": func(r *graph.Row) { r.Bytes, r.RecomputeNS = 1, graph.MaxNS },
	} {
		meta := graph.Meta{Operators: 2000, Tensors: 1}
		if v, err = graph.NewValidator(&meta); err != nil {
			t.Fatal(err)
		}
		var rows []graph.Row
		for op := range int64(2000) {
			rows = append(rows, graph.NewRow(graph.KindOp, op, graph.Forward))
			r := graph.NewRow(graph.KindTensor, op, graph.Forward)
			if op > 0 {
				r = graph.NewRow(graph.KindUse, op, graph.Forward)
			}
			if r.Tensor = 0; op == 0 {
				change(&r)
			}
			rows = append(rows, r)
		}
		if got := message(v.Check(batch(rows))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	meta = graph.Meta{Operators: graph.MaxRows}
	if v, err = graph.NewValidator(&meta); err != nil {
		t.Fatal(err)
	}
	b := &graph.Batch{}
	for op := range int64(graph.MaxRows) {
		b.Append(graph.NewRow(graph.KindOp, op, graph.Forward))
	}
	if err := v.Check(b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	b.Append(graph.NewRow(graph.KindOp, 0, graph.Forward))
	if got, want := message(v.Check(b)), "row 2097152: a graph has at most 2097152 rows"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// otherRow is a row of another writer of Parquet, with a column that graphs do not have.
type otherRow struct {
	Kind        string  `parquet:"kind,dict"`
	Future      float64 `parquet:"future"`
	Operator    int64   `parquet:"operator"`
	Tensor      int64   `parquet:"tensor"`
	Input       int64   `parquet:"input"`
	Name        string  `parquet:"name,dict"`
	Type        string  `parquet:"type,dict"`
	Phase       string  `parquet:"phase,dict"`
	Layer       int32   `parquet:"layer"`
	DurationNS  int64   `parquet:"duration_ns"`
	BaseBytes   int64   `parquet:"base_bytes"`
	Bytes       int64   `parquet:"bytes"`
	RecomputeNS int64   `parquet:"recompute_ns"`
	RowBytes    int64   `parquet:"row_bytes"`
	Role        string  `parquet:"role,dict"`
	Saved       int32   `parquet:"saved"`
	Version     int64   `parquet:"version"`
	DType       string  `parquet:"dtype,dict"`
	Shape       string  `parquet:"shape,dict"`
}

// TestOtherWriter reads files of parquet-go's writer, of this version and others.
func TestOtherWriter(t *testing.T) {
	rows := []otherRow{
		{Kind: "op", Tensor: -1, Input: -1, Name: "λ", Type: "conv", Phase: "backward", Layer: -1, DurationNS: 9, Saved: -1},
		{Kind: "tensor", Input: -1, Name: "t", Phase: "backward", Layer: -1, Bytes: 4, Role: "inner", Saved: 6, DType: "half", Shape: "[2]"},
		{Kind: "use", Input: -1, Phase: "backward", Layer: -1, Saved: -1},
	}
	write := func(version string) []byte {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[otherRow](&out, parquet.KeyValueMetadata("gm.schema", "graph"), parquet.KeyValueMetadata("gm.version", version),
			parquet.KeyValueMetadata("gm.operators", "1"), parquet.KeyValueMetadata("gm.tensors", "1"), parquet.KeyValueMetadata("gm.future", "1"))
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for _, version := range []string{"1.0", "1.99"} {
		r, err := open(write(version))
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		text := r.Strings().Text
		op, tensor := b.Row(0), b.Row(1)
		if text(op.Name) != "λ" || text(op.Type) != "conv" || op.Phase != graph.Backward || op.DurationNS != 9 {
			t.Errorf("version %s: operator %+v", version, op)
		}
		if op.Origin != -1 || tensor.Origin != -1 {
			t.Errorf("version %s: origins %d and %d in a file without the column", version, op.Origin, tensor.Origin)
		}
		if text(tensor.DType) != "half" || text(tensor.Shape) != "[2]" || tensor.Saved != 6 || tensor.Bytes != 4 {
			t.Errorf("version %s: tensor %+v", version, tensor)
		}
	}
	_, err := open(write("2.0"))
	if got, want := message(err), "graph x.parquet: version 2.0 is newer than this program, which reads up to 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rows[2].Kind = "view"
	r, err := open(write("1.1"))
	if err == nil {
		_, err = r.Next()
	}
	if got, want := message(err), `graph x.parquet: row 2: unknown kind "view"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Errors of the metadata name the file.
func TestMetaErrors(t *testing.T) {
	file := bytes.Replace(encode(t), []byte("gm.operators\x18\x013"), []byte("gm.operators\x18\x01-"), 1)
	_, err := open(file)
	if got := message(err); !strings.HasPrefix(got, "graph x.parquet: corrupt: metadata gm.operators: ") {
		t.Error(got)
	}
	for want, change := range map[string]func(*graph.Meta){
		"write graph: metadata: capacity of -1 bytes":              func(m *graph.Meta) { m.Capacity = -1 },
		"write graph: metadata: operators that take -1 ns":         func(m *graph.Meta) { m.ComputeNS = -1 },
		"write graph: metadata: peak of -1 bytes":                  func(m *graph.Meta) { m.PlainPeak = -1 },
		"write graph: metadata: lower bound of -1 bytes":           func(m *graph.Meta) { m.LowerBound = -1 },
		"write graph: metadata: -1 tensors, expected 0 to 2097152": func(m *graph.Meta) { m.Tensors = -1 },
	} {
		meta := goodMeta
		change(&meta)
		if got := message(graph.NewWriter(io.Discard, meta).Close()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func read(file []byte) {
	r, err := open(file)
	for err == nil {
		_, err = r.Next()
	}
}

// FuzzGraphReader takes data and footer separately, so that changes of length keep both intact.
func FuzzGraphReader(f *testing.F) {
	file := encode(f)
	add := func(data, footer []byte) { f.Add(data, footer) }
	add(columntest.Split(file))
	uncompressed, err := columntest.Plain(file)
	if err != nil {
		f.Fatal(err)
	}
	add(columntest.Split(uncompressed))
	f.Fuzz(func(_ *testing.T, data, footer []byte) { read(columntest.Join(data, footer)) })
}

// TestUnused names the row of a tensor without a use.
func TestUnused(t *testing.T) {
	rows := []graph.Row{graph.NewRow(graph.KindOp, 0, graph.Forward)}
	for id := range int64(2) {
		r := graph.NewRow(graph.KindTensor, 0, graph.Forward)
		r.Tensor, r.Bytes = id, 1
		rows = append(rows, r)
	}
	use := graph.NewRow(graph.KindUse, 0, graph.Forward)
	use.Tensor = 0
	want := "row 2: tensor 1 is never used: it needs a row of kind use"
	if got := message(check(graph.Meta{Operators: 1, Tensors: 2}, append(rows, use))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
