package picture

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// TestColors: tags have their colours whoever is beside them, and what is no tag has one by its place.
func TestColors(t *testing.T) {
	byTag := map[string]int{"mine": 7, "yours": 8}
	for i, tag := range tags.Derived() {
		byTag[tag] = i
	}
	for _, test := range []struct {
		names []string
		want  []int
	}{
		{[]string{tags.Parameters, tags.Gradients}, []int{0, 2}},
		{[]string{tags.Parameters + " (guess)", tags.Activations, tags.Activations + " (guess)"}, []int{0, 5, 5}},
		{[]string{"yours", tags.Parameters, "mine"}, []int{8, 0, 7}},
		{[]string{"memory by=pytorch", "context"}, []int{0, 1}},
	} {
		if got := colors(test.names, byTag); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.names, got, test.want)
		}
	}
}

// recorded is a trace of three iterations that a mark ends, of a second each; in the second a request fails.
func recorded(t *testing.T) (*column.Source, *overview.Overview) {
	t.Helper()
	rows := []struct {
		op       trace.Op
		id, size int64
		tag      string
	}{
		{op: trace.OpAlloc, id: 1, size: 100},
		{op: trace.OpMark, tag: "step"},
		{op: trace.OpAlloc, id: 2, size: 50},
		{op: trace.OpMark, tag: "load START"},
		{op: trace.OpMark, tag: "load END"},
		{op: trace.OpOOM, size: 1 << 40},
		{op: trace.OpFree, id: 1},
		{op: trace.OpMark, tag: "step"},
		{op: trace.OpAlloc, id: 3, size: 10},
		{op: trace.OpMark, tag: "step"},
	}
	source, err := column.NewTemporary("recorded", func(out io.Writer) error {
		w := trace.NewWriter(out, trace.Meta{Source: "test"})
		var b trace.Batch
		for i, r := range rows {
			b.Append(trace.Event{TimeNS: 5e9 + int64(i)*1e9, Op: r.op, ID: r.id, Size: r.size, Tag: w.Strings().Code(r.tag)})
		}
		return errors.Join(w.Write(&b), w.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		t.Fatal(err)
	}
	return source, o
}

// TestRead: the axis is that of the stretch, and only its marks are drawn.
func TestRead(t *testing.T) {
	source, o := recorded(t)
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		t.Fatal(err)
	}
	row := func(n int64) *Moment { return &Moment{Row: n} }
	after := func(d time.Duration) *Moment { return &Moment{Timed: true, After: d} }
	one, seven := 1, 7
	load, oom := report.Mark{At: 3, Name: "load", Above: true}, report.Mark{At: 5, Name: "OOM", Alarm: true}
	first, second, third := report.Mark{At: 0, Name: "0"}, report.Mark{At: 2, Name: "1"}, report.Mark{At: 8, Name: "2"}
	for name, c := range map[string]struct {
		look       Look
		start, end float64
		title      string
		marks      []report.Mark
	}{
		"all":                  {Look{}, 0, 9, "test, device 0: peak 150 B", []report.Mark{oom, first, second, third, load}},
		"rows":                 {Look{Rows: true}, 0, 10, "test, device 0: peak 150 B", []report.Mark{oom, first, second, third, load}},
		"iteration":            {Look{Iteration: &one}, 2, 7, "test, device 0: peak 150 B here", []report.Mark{oom, second, load}},
		"iteration, in rows":   {Look{Iteration: &one, Rows: true}, 2, 8, "test, device 0: peak 150 B here", []report.Mark{oom, second, load}},
		"times":                {Look{From: after(6500 * time.Millisecond), To: after(8 * time.Second)}, 6.5, 8, "test, device 0: peak 60 B here", []report.Mark{third}},
		"times, in rows":       {Look{From: after(6500 * time.Millisecond), To: after(8 * time.Second), Rows: true}, 6, 9, "test, device 0: peak 60 B here", []report.Mark{third}},
		"rows, in time":        {Look{From: row(3), To: row(4)}, 3, 4, "test, device 0: peak 150 B here", []report.Mark{load}},
		"a row":                {Look{From: row(5), To: row(5), Rows: true}, 5, 6, "test, device 0: peak 150 B here", []report.Mark{oom}},
		"a moment is a second": {Look{From: row(5), To: row(5)}, 5, 6, "test, device 0: peak 150 B here", []report.Mark{oom}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Read(source, o, labels, c.look)
			if err != nil || len(all) != 1 {
				t.Fatalf("%d pictures, error %v", len(all), err)
			}
			p := all[0]
			if p.Start != c.start || p.End != c.end || p.Rows != c.look.Rows || p.Title != c.title {
				t.Errorf("%s from %g to %g, want %s from %g to %g", p.Title, p.Start, p.End, c.title, c.start, c.end)
			}
			if !slices.Equal(p.Marks, c.marks) {
				t.Errorf("marks %+v, want %+v", p.Marks, c.marks)
			}
		})
	}
	if _, err := Read(source, o, labels, Look{From: row(3), To: row(2)}); !errors.Is(err, ErrEmpty) {
		t.Errorf("a picture that ends before it begins: %v", err)
	}
	if _, err := Read(source, o, labels, Look{Iteration: &seven}); err == nil {
		t.Error("an iteration that the trace does not have")
	}
}
