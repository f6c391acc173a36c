package exporter

import (
	"maps"
	"math/bits"
	"slices"

	"gm/formats/trace"
)

// survey is the result of a first pass over a trace.
type survey struct {
	meta       trace.Meta
	rows       int64
	start, end int64 // times of the first and the last row, ns
	devices    map[int32]*surveyed
	sizes      [65]int64 // allocations by the number of bits of their size
}

// surveyed is the result for one GPU.
type surveyed struct {
	level    trace.Level // whose allocations are exported: the framework's or, if it has none, the driver's
	allocs   int64       // of the framework
	segments bool        // the framework's segments are recorded
	used     bool        // there are allocations or failed requests
}

// survey reads the trace once and returns a survey of it.
func (x *export) survey() (*survey, error) {
	s := &survey{devices: map[int32]*surveyed{}}
	err := x.each(func(r *trace.Reader, row int64, e *trace.Event) error {
		if row == 0 {
			s.start, s.meta = e.TimeNS, r.Meta()
		}
		s.rows, s.end = row+1, e.TimeNS
		if e.Op == trace.OpMark {
			return nil
		}
		d := s.devices[e.Device]
		if d == nil {
			d = &surveyed{}
			s.devices[e.Device] = d
		}
		d.used = d.used || e.Op != trace.OpSnapshot && e.Op != trace.OpSample
		if e.Op == trace.OpAlloc {
			s.sizes[bits.Len64(uint64(e.Size))]++
		}
		if e.Level == trace.LevelFramework {
			d.segments = d.segments || e.Op.Segment()
			if e.Op == trace.OpAlloc {
				d.allocs++
			}
		}
		return nil
	})
	for _, d := range s.devices {
		if d.used && d.allocs == 0 && !d.segments {
			d.level = trace.LevelDriver
		}
	}
	return s, err
}

// ordinals returns the ordinals of the GPUs, in order.
func (s *survey) ordinals() []int32 { return slices.Sorted(maps.Keys(s.devices)) }

// used returns the ordinals of the GPUs with rows other than measurements and snapshots.
func (s *survey) used() []int32 {
	return slices.DeleteFunc(s.ordinals(), func(device int32) bool { return !s.devices[device].used })
}

// exported reports whether a row is exported.
func (s *survey) exported(e *trace.Event) bool {
	d := s.devices[e.Device]
	return d != nil && d.level == e.Level
}
