package changes

import (
	"fmt"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// Diff is what changed between two traces, or two iterations of one trace.
type Diff struct {
	A       Side        `json:"a"`
	B       Side        `json:"b"`
	Devices []*Device   `json:"devices"`
	Leaks   []TraceLeak `json:"leaks"`
}

// Side is one side of a comparison.
type Side struct {
	Trace     string `json:"trace"`
	Source    string `json:"source"`
	Rows      int64  `json:"rows"`
	Iteration *int   `json:"iteration"` // null for a whole trace

	contents []*Contents
	leaks    []TraceLeak
}

// TraceLeak is a leak, and the trace that has it.
type TraceLeak struct {
	Trace string `json:"trace"`
	Leak
}

// ReadSide reads a whole trace.
func ReadSide(source *column.Source, o *overview.Overview) (side Side, err error) {
	side = Side{Trace: source.Name(), Source: o.Source, Rows: o.Rows}
	if side.contents, err = contentsOf(source, o, nil); err != nil {
		return side, err
	}
	for _, d := range side.contents {
		for _, l := range d.Leaks {
			side.leaks = append(side.leaks, TraceLeak{side.Trace, l})
		}
	}
	return side, nil
}

// Leaks finds what leaks in a trace, which it reads once more if that has enough iterations. An error wraps ErrTooMany if the trace has too
// many different allocations for that.
func Leaks(source *column.Source, o *overview.Overview) ([]Leak, error) {
	leaks := []Leak{}
	if !slices.ContainsFunc(o.Devices, func(d *overview.Device) bool { return len(d.Iterations) > leastIterations }) {
		return leaks, nil
	}
	all, err := contentsOf(source, o, nil)
	for _, c := range all {
		leaks = append(leaks, c.Leaks...)
	}
	return leaks, err
}

// CompareTraces compares two whole traces.
func CompareTraces(a, b Side) *Diff { return newDiff(a, b, append(a.leaks, b.leaks...), false) }

func contentsOf(source *column.Source, o *overview.Overview, spans map[int32]overview.Span) ([]*Contents, error) {
	return trace.ReadSource(source, func(r *trace.Reader) ([]*Contents, error) { return Read(r, o, spans) })
}

// CompareIterations compares two iterations of one trace, by their numbers from 0, on every device that has them.
func CompareIterations(source *column.Source, o *overview.Overview, i, j int) (*Diff, error) {
	whole, err := contentsOf(source, o, nil)
	if err != nil {
		return nil, err
	}
	var sides [2]Side
	for n, number := range [2]int{i, j} {
		spans, err := o.Iteration(number)
		if err != nil {
			return nil, fmt.Errorf("trace %s: %w", source.Name(), err)
		}
		sides[n] = Side{Trace: source.Name(), Source: o.Source, Rows: o.Rows, Iteration: &number}
		if sides[n].contents, err = contentsOf(source, o, spans); err != nil {
			return nil, err
		}
	}
	var leaks []TraceLeak
	for _, c := range whole {
		for _, l := range c.Leaks {
			leaks = append(leaks, TraceLeak{source.Name(), l})
		}
	}
	return newDiff(sides[0], sides[1], leaks, true), nil
}

func newDiff(a, b Side, leaks []TraceLeak, oneTrace bool) *Diff {
	d := &Diff{A: a, B: b, Devices: []*Device{}, Leaks: append([]TraceLeak{}, leaks...)}
	byDevice := map[int32][2]*Contents{}
	var order []int32
	for n, side := range []Side{a, b} {
		for _, c := range side.contents {
			pair, known := byDevice[c.Device]
			if !known {
				order = append(order, c.Device)
			}
			pair[n] = c
			byDevice[c.Device] = pair
		}
	}
	slices.Sort(order)
	for _, device := range order {
		pair := byDevice[device]
		d.Devices = append(d.Devices, Compare(pair[0], pair[1], oneTrace))
	}
	return d
}
