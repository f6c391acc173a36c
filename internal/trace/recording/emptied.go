// Package recording reads between the rows of a recorded allocator: what they imply and do not say.
package recording

import (
	"gm/formats/trace"
	"gm/internal/torch/allocconf"
)

// Emptied finds where the cache of one device's allocator was emptied: a recording has no row for that, only for the segments
// given back. A retry after the device was full looks the same, and leaves PyTorch's allocator in the same state.
type Emptied struct {
	early    bool // the allocator may also give segments back to make room for a request, without emptying its whole cache
	segments *idleSegments
	returned int64 // row of the last segment given back with no request behind it yet, -1 for none
}

// NewEmptied watches an allocator with these settings.
func NewEmptied(conf allocconf.Conf) *Emptied {
	return &Emptied{early: conf.ReleasesEarly(), segments: newIdleSegments(), returned: -1}
}

// Add follows one row of the device. It returns the row at which the cache was emptied when that shows now, before this row
// has its effect; -1 otherwise. Rows that are not of the framework's allocator change nothing.
func (d *Emptied) Add(e *trace.Event, row int64) int64 {
	if e.Level != trace.LevelFramework || e.Op == trace.OpSnapshot || e.Op == trace.OpMark || e.Op == trace.OpSample {
		return -1
	}
	emptied := !d.early || d.segments.emptied()
	if d.early {
		d.segments.add(e)
	}
	if e.Op == trace.OpSegmentFree || e.Op == trace.OpSegmentUnmap {
		d.returned = row
		return -1
	}
	at := d.returned
	d.returned = -1
	if at >= 0 && (emptied || e.Op != trace.OpSegmentAlloc) {
		return at
	}
	return -1
}
