package layout

import (
	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/recording"
)

// recorded is what a plan keeps of the traced allocator beside its tensors, in the form of plan.Meta.
type recorded struct {
	conf     blocks.TorchConf
	watches  map[int32]*recording.Emptied
	segments []int64
	emptied  []int64
	older    int64
}

func newRecorded(conf blocks.TorchConf) *recorded {
	return &recorded{conf: conf, watches: map[int32]*recording.Emptied{}}
}

// add takes in one row of a framework's allocator.
func (r *recorded) add(e *trace.Event, row int64, tag string) {
	watch := r.watches[e.Device]
	if watch == nil {
		watch = recording.NewEmptied(r.conf)
		r.watches[e.Device] = watch
	}
	if at := watch.Add(e, row); at >= 0 {
		r.emptied = append(r.emptied, int64(e.Device), at)
	}
	_, older := trace.ParsePreexisting(tag)
	switch {
	case older && e.Op == trace.OpAlloc:
		r.older++
	case !older && e.Op == trace.OpSegmentAlloc && e.Addr != 0 && e.Size != 0:
		r.segments = append(r.segments, int64(e.Device), int64(e.Addr), e.Size)
	}
}
