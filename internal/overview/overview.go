// Package overview sums a trace up: what it holds, where its memory peaks, what is large in it, who holds it, and how well what was
// traced explains what NVML measured.
package overview

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// Overview is a trace in numbers.
type Overview struct {
	Meta    trace.Meta  `json:"-"`
	Source  string      `json:"source"`
	Rows    int64       `json:"rows"`
	StartNS int64       `json:"start_ns"`
	EndNS   int64       `json:"end_ns"`
	Events  []EventKind `json:"events"`
	Steps   []Step      `json:"steps"` // marks that end an iteration
	Devices []*Device   `json:"devices"`
}

// EventKind counts the rows of one operation.
type EventKind struct {
	Op    string `json:"op"`
	Count int64  `json:"count"`
}

// Step is a mark that ends an iteration.
type Step struct {
	Row    int64 `json:"row"`
	TimeNS int64 `json:"time_ns"`
}

// stepTag is the tag of such a mark.
const stepTag = "step"

// Read reads a trace to its end.
func Read(r *trace.Reader) (*Overview, error) {
	o := &Overview{Meta: r.Meta(), Source: r.Meta().Source, Rows: r.Rows(), Steps: []Step{}}
	counts := map[trace.Op]int64{}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if row == 0 {
			o.StartNS = e.TimeNS
		}
		o.EndNS = e.TimeNS
		counts[e.Op]++
		o.add(e, row, r.Strings().Text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for op, n := range counts {
		o.Events = append(o.Events, EventKind{op.String(), n})
	}
	slices.SortFunc(o.Events, func(a, b EventKind) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op)) })
	slices.SortFunc(o.Devices, func(a, b *Device) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for _, d := range o.Devices {
		d.finish(o.Rows)
	}
	return o, nil
}

// add takes in one row; text returns what a code stands for.
func (o *Overview) add(e *trace.Event, row int64, text func(code int32) string) {
	switch {
	case e.Op == trace.OpSnapshot:
	case e.Op == trace.OpMark:
		if text(e.Tag) == stepTag {
			o.Steps = append(o.Steps, Step{row, e.TimeNS})
		}
	case e.Op == trace.OpSample || e.Level == trace.LevelDriver:
		d := o.device(e.Device)
		if d.Driver == nil {
			d.Driver = newDriver(o.Rows)
		}
		d.Driver.add(e, row, text(e.Tag))
	default:
		d := o.device(e.Device)
		d.add(e, row)
		if pool := text(e.Pool); pool != "" && !slices.Contains(d.Pools, pool) {
			d.Pools = append(d.Pools, pool)
		}
	}
}

func (o *Overview) device(ordinal int32) *Device {
	for _, d := range o.Devices {
		if d.Ordinal == ordinal {
			return d
		}
	}
	d := newDevice(ordinal, o.Rows)
	o.Devices = append(o.Devices, d)
	return d
}
