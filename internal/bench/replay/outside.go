package replay

import (
	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// outside adds up, by device, the memory that others than PyTorch have from the driver.
type outside map[int32]*others

type others struct {
	live      map[int64]int64 // bytes, by id
	sum, most int64
}

// add processes a row of the driver's level.
func (o outside) add(e *trace.Event, tag string) {
	d := o[e.Device]
	if d == nil {
		d = &others{live: map[int64]int64{}}
		o[e.Device] = d
	}
	switch e.Op {
	case trace.OpAlloc:
		if kind, by := trace.ParseDriverTag(tag); kind.Obtained() && by != overview.PyTorch {
			d.live[e.ID] = e.Size
			d.sum += e.Size
			d.most = max(d.most, d.sum)
		}
	case trace.OpFree, trace.OpFreeCompleted:
		d.sum -= d.live[e.ID]
		delete(d.live, e.ID)
	}
}

// most returns the most bytes on a device at a time, 0 if there were none.
func (o outside) most(device int32) int64 {
	if d := o[device]; d != nil {
		return d.most
	}
	return 0
}
