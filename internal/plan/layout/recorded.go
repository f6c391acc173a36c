package layout

import (
	"gm/formats/trace"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/recording"
)

// recorded is what a plan stores about the traced allocator besides tensors, in the form of plan.Meta.
type recorded struct {
	conf     allocconf.Conf
	watches  map[int32]*recording.Emptied
	segments []int64
	emptied  []int64
	older    int64
}

func newRecorded(conf allocconf.Conf) *recorded {
	return &recorded{conf: conf, watches: map[int32]*recording.Emptied{}}
}

// maxRecorded limits the segments, and the times that the cache was emptied, in a plan. A healthy job has fewer.
const maxRecorded = 100_000

// maxAddress is above any address of a GPU.
const maxAddress = 1 << 60

// add processes one row of a framework's allocator.
func (r *recorded) add(e *trace.Event, row int64, tag string) {
	watch := r.watches[e.Device]
	if watch == nil {
		watch = recording.NewEmptied(r.conf)
		r.watches[e.Device] = watch
	}
	if at := watch.Add(e, row); at >= 0 && len(r.emptied) < 2*maxRecorded {
		r.emptied = append(r.emptied, int64(e.Device), at)
	}
	_, older := trace.ParsePreexisting(tag)
	switch {
	case older && e.Op == trace.OpAlloc:
		r.older++
	case !older && e.Op == trace.OpSegmentAlloc && e.Addr != 0 && e.Addr < maxAddress && e.Size != 0 && len(r.segments) < 3*maxRecorded:
		r.segments = append(r.segments, int64(e.Device), int64(e.Addr), e.Size)
	}
}
