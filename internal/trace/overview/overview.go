// Package overview summarizes a trace: its rows, its peak, the largest sizes, who holds the memory, and how much of the memory that
// NVML measured the trace explains.
package overview

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/trace/iterations"
)

// Overview is a summary of a trace.
type Overview struct {
	Meta    trace.Meta  `json:"-"`
	Source  string      `json:"source"`
	Rows    int64       `json:"rows"`
	StartNS int64       `json:"start_ns"`
	EndNS   int64       `json:"end_ns"`
	Events  []EventKind `json:"events"`
	Steps   []Step      `json:"steps"` // marks named step
	Devices []*Device   `json:"devices"`

	marks    iterations.Marks
	odd      odd
	recorded bool // a row is not older than the recording
}

// Unrecorded reports whether the trace was made from a snapshot of PyTorch without a history: all that it has was there before.
func (o *Overview) Unrecorded() bool {
	return strings.HasPrefix(o.Source, "pytorch snapshot") && !o.recorded
}

// EventKind counts the rows of one operation.
type EventKind struct {
	Op    string `json:"op"`
	Count int64  `json:"count"`
}

// Step is a mark named step, which ends an iteration.
type Step struct {
	Row    int64 `json:"row"`
	TimeNS int64 `json:"time_ns"`
}

// Read reads a trace to its end. It needs about 260 bytes of memory for each of the first [iterations.MaxRequests] allocations of a
// device, at most [iterations.MaxInAll] in total, and about 100 for each live allocation.
func Read(r *trace.Reader) (*Overview, error) { return new(Shared).Read(r) }

// Read is the function [Read].
func (s *Shared) Read(r *trace.Reader) (*Overview, error) {
	o := &Overview{Meta: r.Meta(), Source: r.Meta().Source, Rows: r.Rows(), Steps: []Step{}}
	var counts [math.MaxInt8 + 1]int64 // by operation
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if row == 0 {
			o.StartNS = e.TimeNS
		}
		o.EndNS = e.TimeNS
		o.odd.clock.Add(e.TimeNS)
		counts[e.Op]++
		o.add(e, row, r.Strings().Text)
		if !o.recorded {
			_, older := trace.ParsePreexisting(r.Strings().Text(e.Tag))
			o.recorded = !older
		}
		if o.odd.listed > maxListed {
			return r.Wrap(fmt.Errorf("row %d: more than %d streams, steps and failed requests", row, maxListed))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for op, n := range counts {
		if n > 0 {
			o.Events = append(o.Events, EventKind{trace.Op(op).String(), n})
		}
	}
	slices.SortFunc(o.Events, func(a, b EventKind) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op)) })
	slices.SortFunc(o.Devices, func(a, b *Device) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for _, d := range o.Devices {
		d.finish(o.Rows, o.EndNS, o.marks.Ends(), s)
	}
	return o, nil
}

// add processes one row; text returns the text of a code.
func (o *Overview) add(e *trace.Event, row int64, text func(code int32) string) {
	switch {
	case e.Op == trace.OpSnapshot:
	case e.Op == trace.OpMark:
		tag := text(e.Tag)
		if tag == iterations.Step {
			o.Steps = append(o.Steps, Step{row, e.TimeNS})
		}
		if o.marks.Add(tag, row) {
			o.odd.listed++
		}
	case e.Op == trace.OpSample || e.Level == trace.LevelDriver:
		d := o.device(e.Device)
		if d.Driver == nil {
			d.Driver = newDriver(o.Rows, &o.odd)
		}
		d.Driver.add(e, row, text(e.Tag))
	default:
		d := o.device(e.Device)
		d.add(e, row)
		o.odd.follow(&d.ranges, e, row)
		if e.Pool != 0 && !d.pools[e.Pool] {
			d.pools[e.Pool] = true
			d.Pools = append(d.Pools, text(e.Pool))
		}
	}
}

func (o *Overview) device(ordinal int32) *Device {
	for _, d := range o.Devices {
		if d.Ordinal == ordinal {
			return d
		}
	}
	d := newDevice(ordinal, o.Rows, &o.odd)
	o.Devices = append(o.Devices, d)
	return d
}
