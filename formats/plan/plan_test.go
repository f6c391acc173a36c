package plan_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"gm/formats/column/columntest"
	"gm/formats/plan"
)

var goodMeta = plan.Meta{
	Peak: 2048, LowerBound: 1536, Solver: "best-fit", SolveNS: 1500, Optimal: true, Alignment: 512, Rows: 9,
	First: 2, End: 8, Period: 6, Digest: "00ff", Source: "test", Devices: []string{"H200"}, Capacity: 1 << 37, RowsOf: plan.Step,
}

// good is a tensor that may follow row i of a plan.
func good(i int64) plan.Tensor {
	return plan.Tensor{ID: i + 1, Size: 513, Alloc: i, Free: i + 2, AllocNS: 10 * i, FreeNS: 10*i + 20, Offset: 512}
}

func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	meta := goodMeta
	meta.Peak = 7 * 1536
	w := plan.NewWriter(&out, meta)
	want := &plan.Batch{}
	for i := range int64(7) {
		tensor := good(i)
		tensor.Stream, tensor.Device = -i, int32(i)
		tensor.Pool, tensor.Arena = w.Strings().Code("pool"), w.Strings().Code("arena "+string(rune('0'+i)))
		want.Append(tensor)
	}
	if err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := plan.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Meta(), meta) {
		t.Errorf("metadata\n%+v, want\n%+v", r.Meta(), meta)
	}
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() || r.Rows() != int64(want.Len()) {
		t.Fatalf("%d rows of %d, want %d", got.Len(), r.Rows(), want.Len())
	}
	for i := range want.Len() {
		g, e := got.Row(i), want.Row(i)
		if a, b := r.Strings().Text(g.Arena), w.Strings().Text(e.Arena); a != b {
			t.Errorf("row %d: arena %q, want %q", i, a, b)
		}
		if a := r.Strings().Text(g.Pool); a != "pool" {
			t.Errorf("row %d: pool %q", i, a)
		}
		g.Arena, e.Arena, g.Pool, e.Pool = 0, 0, 0, 0
		if g != e {
			t.Errorf("row %d: %+v, want %+v", i, g, e)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
	got.Reset()
	if got.Len() != 0 {
		t.Errorf("%d rows after Reset", got.Len())
	}
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Tensor) // of the second of two good rows
		want   string
	}{
		"good":             {func(*plan.Tensor) {}, ""},
		"up to the peak":   {func(p *plan.Tensor) { p.Offset = 1024 }, ""},
		"never freed":      {func(p *plan.Tensor) { p.Free = 9 }, ""},
		"id twice":         {func(p *plan.Tensor) { p.ID = 1 }, "row 1: id 1, expected more than the 1 of the row above"},
		"id of nothing":    {func(p *plan.Tensor) { p.ID = 0 }, "row 1: id 0, expected more than the 1 of the row above"},
		"size 0":           {func(p *plan.Tensor) { p.Size = 0 }, "row 1: size of 0 bytes"},
		"size 2^62":        {func(p *plan.Tensor) { p.Size = 1 << 62 }, "row 1: size of 4611686018427387904 bytes"},
		"alloc negative":   {func(p *plan.Tensor) { p.Alloc = -1 }, "row 1: alloc at row -1 of the trace"},
		"out of order":     {func(p *plan.Tensor) { p.Alloc = 0 }, "row 1: alloc at row 0 of the trace, expected more than the 0 of the row above"},
		"free at alloc":    {func(p *plan.Tensor) { p.Free = 1 }, "row 1: free at row 1 of the trace, alloc at 1"},
		"free too late":    {func(p *plan.Tensor) { p.Free = 10 }, "row 1: free at row 10 of a trace of 9 rows"},
		"time negative":    {func(p *plan.Tensor) { p.AllocNS = -1 }, "row 1: alloc at -1 ns"},
		"time backwards":   {func(p *plan.Tensor) { p.FreeNS = 9 }, "row 1: free at 9 ns, alloc at 10"},
		"time far":         {func(p *plan.Tensor) { p.FreeNS = 1<<62 + 1 }, "row 1: free at 4611686018427387905 ns, expected at most 4611686018427387904"},
		"device":           {func(p *plan.Tensor) { p.Device = 1024 }, "row 1: device 1024, expected 0 to 1023"},
		"offset negative":  {func(p *plan.Tensor) { p.Offset = -512 }, "row 1: offset of -512 bytes"},
		"offset 2^62":      {func(p *plan.Tensor) { p.Offset = 1 << 62 }, "row 1: offset of 4611686018427387904 bytes"},
		"offset unaligned": {func(p *plan.Tensor) { p.Offset = 100 }, "row 1: offset 100 is no multiple of 512"},
		"beyond the peak":  {func(p *plan.Tensor) { p.Offset = 1536 }, "row 1: ends at byte 2560, beyond the peak of 2048"},
		"another arena":    {func(p *plan.Tensor) { p.Offset, p.Arena = 0, 1 }, "row 1: the arenas up to here end at byte 2560, added up, beyond the peak of 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &plan.Batch{}
			b.Append(good(0))
			second := good(1)
			c.change(&second)
			b.Append(second)
			meta := goodMeta
			v, err := plan.NewValidator(&meta)
			if err != nil {
				t.Fatal(err)
			}
			if got := message(v.Check(b)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestSums checks sizes, ends of arenas and segments whose sums are valid modulo 2^64.
func TestSums(t *testing.T) {
	meta := plan.Meta{Peak: plan.MaxBytes, Alignment: 512, Rows: 100}
	many := func(arena func(i int64) int32) string {
		v, err := plan.NewValidator(&meta)
		if err != nil {
			t.Fatal(err)
		}
		b := &plan.Batch{}
		for i := range int64(17) {
			b.Append(plan.Tensor{ID: i + 1, Size: plan.MaxBytes, Alloc: i, Free: i + 1, Arena: arena(i)})
		}
		return message(v.Check(b))
	}
	want := "row 1: the arenas up to here end at byte 2305843009213693952, added up, beyond the peak of 1152921504606846976"
	if got := many(func(i int64) int32 { return int32(i) }); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "row 2: the sizes of the rows add up to more than 2305843009213693952 bytes"
	if got := many(func(int64) int32 { return 0 }); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 17 {
		meta.Segments = append(meta.Segments, 0, 1, plan.MaxBytes)
	}
	if _, err := plan.NewValidator(&meta); message(err) != "the segments add up to more than 2305843009213693952 bytes" {
		t.Errorf("error %v", err)
	}
}

func TestMetaRules(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Meta)
		want   string
	}{
		"no alignment":        {func(m *plan.Meta) { m.Alignment = 0 }, "write plan: metadata: alignment of 0 bytes"},
		"negative peak":       {func(m *plan.Meta) { m.Peak = -1 }, "write plan: metadata: peak of -1 bytes"},
		"bound over the peak": {func(m *plan.Meta) { m.LowerBound = 4096 }, "write plan: metadata: lower bound of 4096 bytes, with a peak of 2048"},
		"negative rows":       {func(m *plan.Meta) { m.Rows = -1 }, "write plan: metadata: trace of -1 rows"},
		"too many rows":       {func(m *plan.Meta) { m.Rows = 1<<26 + 1 }, "write plan: metadata: trace of 67108865 rows"},
		"rows beyond the end": {func(m *plan.Meta) { m.End = 10 }, "write plan: metadata: plan of the rows 2 to 10 of a trace of 9"},
		"other period":        {func(m *plan.Meta) { m.Period = 5 }, "write plan: metadata: period of 5 rows, in a plan of the rows 2 to 8"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := goodMeta
			c.change(&meta)
			w := plan.NewWriter(io.Discard, meta)
			if got := message(w.Write(&plan.Batch{})); got != c.want {
				t.Errorf("write: %q, want %q", got, c.want)
			}
			if got := message(w.Close()); got != c.want {
				t.Errorf("close: %q, want %q", got, c.want)
			}
		})
	}
	w := plan.NewWriter(io.Discard, goodMeta)
	w.Meta().SolveNS++
	w.Meta().Peak++
	want := "write plan: peak, rows or alignment changed after rows were checked against them"
	if got := message(w.Close()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStepID(t *testing.T) {
	for _, test := range []struct {
		n      int64
		tensor int32
		want   int64
	}{{1, -1, 1 << 21}, {1, 0, 1<<21 + 1}, {3, 1<<21 - 2, 4<<21 - 1}, {4, -1, 4 << 21}} {
		if got := plan.StepID(test.n, test.tensor); got != test.want {
			t.Errorf("%d, %d: %d, want %d", test.n, test.tensor, got, test.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzPlanReader takes data and footer separately, so that changes of length keep both intact.
func FuzzPlanReader(f *testing.F) {
	var out bytes.Buffer
	w := plan.NewWriter(&out, goodMeta)
	b := &plan.Batch{}
	for i := range int64(7) {
		b.Append(good(i))
	}
	if err := w.Write(b); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	add := func(data, footer []byte) { f.Add(data, footer) }
	add(columntest.Split(out.Bytes()))
	uncompressed, err := columntest.Plain(out.Bytes())
	if err != nil {
		f.Fatal(err)
	}
	add(columntest.Split(uncompressed))
	f.Fuzz(func(_ *testing.T, data, footer []byte) {
		file := columntest.Join(data, footer)
		r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
		for err == nil {
			_, err = r.Next()
		}
	})
}
