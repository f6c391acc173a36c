// Package recording derives from the rows of a recorded allocator what they imply but do not state.
package recording

import (
	"gm/formats/trace"
	"gm/internal/torch/allocconf"
)

// Emptied detects when the cache of one device's allocator was emptied. A recording has no row for that, only rows for the released
// segments. A retry after the device was full looks the same, and leaves PyTorch's allocator in the same state.
type Emptied struct {
	early    bool // the allocator may also release segments to make room for a request, without emptying its whole cache
	segments *idleSegments
	returned int64 // row of the last released segment that no request has followed yet, -1 for none
}

// NewEmptied returns an Emptied for an allocator with these settings.
func NewEmptied(conf allocconf.Conf) *Emptied {
	return &Emptied{early: conf.ReleasesEarly(), segments: newIdleSegments(), returned: -1}
}

// Add processes one row of the device. If the row shows that the cache was emptied before it, Add returns the row at which that
// happened; otherwise -1. Rows that are not of the framework's allocator are ignored.
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
