package schedule_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"

	"gm/formats/column/columntest"
	"gm/formats/schedule"
)

var goodMeta = schedule.Meta{
	Digest: "00ff", Graph: "opt13b", Device: "H200", Operators: 20, Tensors: 3, Policy: "memo", DeviceBudget: 1 << 35, HostBudget: 1 << 36,
	Link: `{"out": 5e10}`, GPUs: 8, StepNS: 2000, PlainNS: 1900, Peak: 1 << 34, PlainPeak: 1 << 36, HostPeak: 4096, Alternatives: "keep: infeasible",
}

// good is a schedule with each kind of action.
func good(code func(string) int32) []schedule.Action {
	var actions []schedule.Action
	add := func(kind schedule.Kind, tensor, at, bytes, slot int64) {
		actions = append(actions, schedule.Action{
			Kind: kind, Tensor: tensor, Name: code("t" + string(rune('0'+tensor))), Operator: at, Bytes: bytes, Slot: slot, Lane: kind.Lane(),
		})
	}
	add(schedule.Offload, 0, 2, 1024, 0)
	add(schedule.Offload, 1, 2, 3072, 1024)
	add(schedule.Settle, 0, 3, 0, -1)
	add(schedule.Free, 1, 5, 0, -1)
	add(schedule.Prefetch, 1, 11, 3072, 1024)
	add(schedule.Await, 1, 12, 0, -1)
	add(schedule.Recompute, 1, 12, 0, -1)
	add(schedule.Offload, 2, 12, 512, -1)
	return actions
}

func batch(actions []schedule.Action) *schedule.Batch {
	b := &schedule.Batch{}
	for _, a := range actions {
		b.Append(a)
	}
	return b
}

// encode writes the good schedule as a file.
func encode(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := schedule.NewWriter(&out, goodMeta)
	if err := w.Write(batch(good(w.Strings().Code))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(file []byte) (*schedule.Reader, error) {
	return schedule.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
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
	var got []schedule.Action
	if err := schedule.Each(r, func(a *schedule.Action) error { got = append(got, *a); return nil }); err != nil {
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

// TestSum checks copies whose sum overflows.
func TestSum(t *testing.T) {
	v, err := schedule.NewValidator(&schedule.Meta{Operators: 1, Tensors: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &schedule.Batch{}
	for range schedule.MaxTotal/schedule.MaxBytes + 1 {
		b.Append(schedule.Action{Kind: schedule.Offload, Lane: schedule.Out, Bytes: schedule.MaxBytes, Slot: -1})
	}
	if got, want := message(v.Check(b)), "row 1024: the bytes of the rows add up to more than 1152921504606846976"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRules(t *testing.T) {
	const far = 1 << 62
	for name, c := range map[string]struct {
		row    int // of the good schedule
		change func(*schedule.Action)
		want   string
	}{
		"good":                {0, func(*schedule.Action) {}, ""},
		"no slot":             {0, func(a *schedule.Action) { a.Slot = -1 }, ""},
		"bytes of a wait":     {2, func(a *schedule.Action) { a.Bytes = 1024 }, ""},
		"kind":                {0, func(a *schedule.Action) { a.Kind = 6 }, "row 0: unknown kind 6"},
		"lane":                {0, func(a *schedule.Action) { a.Lane = schedule.In }, "row 0: offload in lane in, expected out"},
		"no such lane":        {2, func(a *schedule.Action) { a.Lane = 9 }, "row 2: settle in lane Lane(9), expected compute"},
		"tensor":              {2, func(a *schedule.Action) { a.Tensor = 3 }, "row 2: tensor 3 of 3"},
		"tensor negative":     {2, func(a *schedule.Action) { a.Tensor = -1 }, "row 2: tensor -1 of 3"},
		"operator":            {7, func(a *schedule.Action) { a.Operator = 20 }, "row 7: at operator 20 of 20"},
		"operator negative":   {0, func(a *schedule.Action) { a.Operator = -1 }, "row 0: at operator -1 of 20"},
		"out of order":        {7, func(a *schedule.Action) { a.Operator = 11 }, "row 7: at operator 11, after the 12 of the row above"},
		"copy of nothing":     {0, func(a *schedule.Action) { a.Bytes = 0 }, "row 0: offload of 0 bytes"},
		"bytes 2^62":          {2, func(a *schedule.Action) { a.Bytes = far }, "row 2: settle of 4611686018427387904 bytes"},
		"bytes negative":      {2, func(a *schedule.Action) { a.Bytes = -1 }, "row 2: settle of -1 bytes"},
		"slot of a wait":      {2, func(a *schedule.Action) { a.Slot = 0 }, "row 2: settle has slot 0, expected -1"},
		"slot negative":       {0, func(a *schedule.Action) { a.Slot = -2 }, "row 0: slot -2"},
		"slot 2^62":           {0, func(a *schedule.Action) { a.Slot = far }, "row 0: 1024 bytes at 4611686018427387904 end beyond the 4096 bytes of host memory"},
		"beyond the peak":     {1, func(a *schedule.Action) { a.Slot = 1025 }, "row 1: 3072 bytes at 1025 end beyond the 4096 bytes of host memory"},
		"prefetch of nothing": {4, func(a *schedule.Action) { a.Tensor = 2 }, "row 4: prefetch of tensor 2, which was not offloaded"},
		"other slot":          {4, func(a *schedule.Action) { a.Slot = 0 }, "row 4: prefetch of 3072 bytes at 0, offloaded were 3072 at 1024"},
		"other bytes":         {4, func(a *schedule.Action) { a.Bytes = 512 }, "row 4: prefetch of 512 bytes at 1024, offloaded were 3072 at 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			actions := good(func(string) int32 { return 1 })
			c.change(&actions[c.row])
			meta := goodMeta
			v, err := schedule.NewValidator(&meta)
			if err != nil {
				t.Fatal(err)
			}
			if got := message(v.Check(batch(actions))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A schedule of the most rows is taken, and no more.
func TestRows(t *testing.T) {
	meta := schedule.Meta{Operators: 1, Tensors: 1}
	v, err := schedule.NewValidator(&meta)
	if err != nil {
		t.Fatal(err)
	}
	wait := schedule.Action{Kind: schedule.Await, Slot: -1}
	b := &schedule.Batch{}
	for range schedule.MaxRows {
		b.Append(wait)
	}
	if err := v.Check(b); err != nil {
		t.Fatal(err)
	}
	if got, want := message(v.Check(batch([]schedule.Action{wait}))), "row 2097152: a schedule has at most 2097152 rows"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMetaRules(t *testing.T) {
	for want, change := range map[string]func(*schedule.Meta){
		"graph of -1 operators, expected 0 to 2097152":                  func(m *schedule.Meta) { m.Operators = -1 },
		"graph of 1099511627776 tensors, expected 0 to 2097152":         func(m *schedule.Meta) { m.Tensors = 1 << 40 },
		"budgets of 34359738368 bytes on the device and -1 on the host": func(m *schedule.Meta) { m.HostBudget = -1 },
		"peak of -1 bytes, 68719476736 when nothing is moved":           func(m *schedule.Meta) { m.Peak = -1 },
		"peak of -4 bytes of host memory":                               func(m *schedule.Meta) { m.HostPeak = -4 },
		"step of -1 ns, 1900 when nothing is moved":                     func(m *schedule.Meta) { m.StepNS = -1 },
		"copies of -1 GPUs at the same time, expected 0 to 1048576":     func(m *schedule.Meta) { m.GPUs = -1 },
		"link is no JSON": func(m *schedule.Meta) { m.Link = "{" },
	} {
		meta := goodMeta
		change(&meta)
		if got := message(schedule.NewWriter(io.Discard, meta).Close()); got != "write schedule: metadata: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w := schedule.NewWriter(io.Discard, goodMeta)
	w.Meta().StepNS++
	w.Meta().HostPeak++
	want := "write schedule: operators, tensors or peak of host memory changed after rows were checked against them"
	if got := message(w.Close()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// otherRow is a row of another writer of Parquet, with a column that schedules do not have.
type otherRow struct {
	Lane     string   `parquet:"lane,dict"`
	Operator int64    `parquet:"operator"`
	Kind     string   `parquet:"kind,dict"`
	Tensor   int64    `parquet:"tensor"`
	Future   []string `parquet:"future"`
	Name     string   `parquet:"name"`
	Bytes    int64    `parquet:"bytes"`
	Slot     int64    `parquet:"slot"`
}

// TestOtherWriter reads files of parquet-go's writer, of this version and others.
func TestOtherWriter(t *testing.T) {
	rows := []otherRow{{Kind: "offload", Lane: "out", Bytes: 7, Name: "λ", Operator: 4}, {Kind: "free", Lane: "compute", Slot: -1, Operator: 5}}
	write := func(version string) []byte {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[otherRow](&out, parquet.KeyValueMetadata("gm.schema", "schedule"), parquet.KeyValueMetadata("gm.version", version),
			parquet.KeyValueMetadata("gm.operators", "9"), parquet.KeyValueMetadata("gm.tensors", "1"), parquet.KeyValueMetadata("gm.host_peak", "7"))
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
		if a := b.Row(0); a.Kind != schedule.Offload || a.Lane != schedule.Out || a.Bytes != 7 || a.Operator != 4 || r.Strings().Text(a.Name) != "λ" {
			t.Errorf("version %s: %+v", version, a)
		}
	}
	_, err := open(write("2.0"))
	if got, want := message(err), "schedule x.parquet: version 2.0 is newer than this program, which reads up to 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rows[1].Kind = "drop"
	r, err := open(write("1.1"))
	if err == nil {
		_, err = r.Next()
	}
	if got, want := message(err), `schedule x.parquet: row 1: unknown kind "drop"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzScheduleReader takes data and footer separately, so that changes of length keep both intact.
func FuzzScheduleReader(f *testing.F) {
	file := encode(f)
	add := func(data, footer []byte) { f.Add(data, footer) }
	add(columntest.Split(file))
	uncompressed, err := columntest.Plain(file)
	if err != nil {
		f.Fatal(err)
	}
	add(columntest.Split(uncompressed))
	f.Fuzz(func(_ *testing.T, data, footer []byte) {
		r, err := open(columntest.Join(data, footer))
		for err == nil {
			_, err = r.Next()
		}
	})
}
