package overview

import (
	"bytes"
	"slices"
	"testing"

	"gm/formats/trace"
)

// read sums up a trace of these rows.
func read(t *testing.T, rows []trace.Event) *Overview {
	t.Helper()
	o, err := Read(open(t, write(t, rows)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// texts are what the tags and stacks of rows stand for.
var texts = []string{
	"", "memory by=pytorch", "context", "pool by=rapids", "pinned by=pytorch", "physical by=pytorch", "module by=pytorch", "card", "process",
	"step", "epoch", "physical by=nccl", "main;f", "main;g", "preexisting",
}

// code returns the code of a text in rows.
func code(text string) int32 { return int32(slices.Index(texts, text)) }

// write makes a trace of rows.
func write(t *testing.T, rows []trace.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Source: "test"})
	for _, text := range texts {
		w.Strings().Code(text)
	}
	private := w.Strings().Code("1.0")
	var b trace.Batch
	for _, e := range rows {
		if e.Pool != 0 {
			e.Pool = private
		}
		b.Append(e)
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(t *testing.T, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	o := read(t, []trace.Event{
		{TimeNS: 10, Op: trace.OpSegmentAlloc, Size: 4 << 20},
		{TimeNS: 20, Op: trace.OpAlloc, ID: 1, Size: 1000},
		{TimeNS: 30, Op: trace.OpAlloc, ID: 2, Size: 3000, Stream: 7, Pool: 1},
		{TimeNS: 40, Op: trace.OpFreeRequested, ID: 2},
		{TimeNS: 50, Op: trace.OpAlloc, ID: 3, Size: 1000},
		{TimeNS: 60, Op: trace.OpFreeCompleted, ID: 2},
		{TimeNS: 70, Op: trace.OpMark},
		{TimeNS: 70, Op: trace.OpAlloc, ID: 4, Size: 9999, Level: trace.LevelDriver},
		{TimeNS: 80, Op: trace.OpFree, ID: 1},
		{TimeNS: 80, Op: trace.OpSegmentAlloc, Size: 2 << 20},
		{TimeNS: 85, Op: trace.OpSegmentFree, Size: 4 << 20},
		{TimeNS: 90, Op: trace.OpOOM, Size: 5 << 30, Addr: 77, Device: 3},
	})
	if o.Rows != 12 || o.StartNS != 10 || o.EndNS != 90 {
		t.Errorf("%d rows from %d to %d", o.Rows, o.StartNS, o.EndNS)
	}
	if want := (EventKind{"alloc", 4}); o.Events[0] != want {
		t.Errorf("most frequent %v, want %v", o.Events[0], want)
	}
	if len(o.Devices) != 2 || o.Devices[0].Ordinal != 0 || o.Devices[1].Ordinal != 3 {
		t.Fatalf("devices %v", o.Devices)
	}
	d := o.Devices[0]
	if d.Allocs != 3 || d.Unfreed != 1 {
		t.Errorf("%d allocs, %d never freed", d.Allocs, d.Unfreed)
	}
	if d.PeakLive != 5000 || d.PeakRow != 4 || d.PeakNS != 50 {
		t.Errorf("peak %d at row %d, %d ns", d.PeakLive, d.PeakRow, d.PeakNS)
	}
	if d.PeakReserved != 6<<20 {
		t.Errorf("peak reserved %d", d.PeakReserved)
	}
	if want := []Size{{3000, 1}, {1000, 2}}; !slices.Equal(d.Largest, want) {
		t.Errorf("largest %v, want %v", d.Largest, want)
	}
	if len(d.Streams) != 2 || d.Streams[0].Handle != 0 || d.Streams[0].Allocs != 2 || d.Streams[1].PeakLive != 3000 {
		t.Errorf("streams %+v %+v", d.Streams[0], d.Streams[1])
	}
	if !slices.Equal(d.Pools, []string{"1.0"}) {
		t.Errorf("pools %q", d.Pools)
	}
	if want := (OOM{11, 5 << 30, 77}); len(o.Devices[1].OOMs) != 1 || o.Devices[1].OOMs[0] != want {
		t.Errorf("OOMs %v", o.Devices[1].OOMs)
	}
}

func TestCurve(t *testing.T) {
	c := newCurve(6)
	for i, bytes := range []int64{5, 9, 2, 2, 7, 1} {
		c.add(int64(i), int64(i)*10, bytes)
	}
	if got, want := c.columns(0, 50, 5), []float64{9, 9, 2, 7, 7}; !slices.Equal(got, want) {
		t.Errorf("five columns %v, want %v", got, want)
	}
	if got, want := c.columns(0, 50, 1), []float64{9}; !slices.Equal(got, want) {
		t.Errorf("one column %v, want %v", got, want)
	}
	if got, want := c.columns(0, 0, 2), []float64{5, 9}; !slices.Equal(got, want) {
		t.Errorf("no time at all %v, want %v", got, want)
	}
}

// TestUnrecorded: memory that was there before is no history, whatever else is.
func TestUnrecorded(t *testing.T) {
	older := trace.Event{TimeNS: 1, Op: trace.OpSegmentAlloc, Size: 9, Addr: 512, Tag: code(trace.PreexistingTag(0))}
	failed := trace.Event{TimeNS: 1, Op: trace.OpOOM, Size: 99}
	for _, c := range []struct {
		source string
		rows   []trace.Event
		want   bool
	}{
		{"pytorch snapshot a.pickle", []trace.Event{older}, true},
		{"pytorch snapshot a.pickle", []trace.Event{older, failed}, false},
		{"pytorch snapshot a.pickle", []trace.Event{failed}, false},
		{"test", []trace.Event{older}, false},
	} {
		o := read(t, c.rows)
		if o.Source = c.source; o.Unrecorded() != c.want {
			t.Errorf("%s, %d rows: %t, want %t", c.source, len(c.rows), !c.want, c.want)
		}
	}
}
