package overview

import "gm/formats/trace"

// holder tracks the live allocations of a device.
type holder struct {
	top      *Top
	level    trace.Level
	look     Look
	live     map[int64]block // by id
	pools    map[int32]int64 // bytes in the driver's pools, by the code of the tag
	reserved int64
}

type block struct {
	size   int64
	stream int64
	stack  int32
	tag    int32
	label  int // of the tags
}

func newHolder(d *Device, look Look) *holder {
	level, _, _ := d.Peak()
	return &holder{
		top: &Top{Device: d.Ordinal, Level: level.String(), Moments: d.moments(look)}, level: level, look: look,
		live: map[int64]block{}, pools: map[int32]int64{},
	}
}

// add processes one row of the device and the level.
func (h *holder) add(e *trace.Event, tag string) {
	switch e.Op {
	case trace.OpAlloc:
		h.top.HasStacks = h.top.HasStacks || e.Stack != 0
		if kind, _ := trace.ParseDriverTag(tag); h.level == trace.LevelFramework || kind.Obtained() {
			h.live[e.ID] = block{size: e.Size, stream: e.Stream, stack: e.Stack, tag: e.Tag}
		}
	case trace.OpFree, trace.OpFreeCompleted:
		delete(h.live, e.ID)
	case trace.OpSegmentAlloc:
		h.reserve(e, e.Size)
	case trace.OpSegmentFree:
		h.reserve(e, -e.Size)
	case trace.OpSegmentMap:
		h.reserved += e.Size
	case trace.OpSegmentUnmap:
		h.reserved = max(h.reserved-e.Size, 0)
	}
}

func (h *holder) reserve(e *trace.Event, bytes int64) {
	h.reserved = max(h.reserved+bytes, 0)
	if h.level == trace.LevelDriver {
		h.pools[e.Tag] = max(h.pools[e.Tag]+bytes, 0)
	}
}

// describe fills in a moment, right after its row was processed.
func (h *holder) describe(m *Moment, e *trace.Event, text func(code int32) string) {
	m.TimeNS = e.TimeNS
	if m.What == "oom" {
		m.Failed = &Failed{Size: e.Size, Free: int64(e.Addr), Stack: text(e.Stack)}
		if e.Level == trace.LevelDriver {
			m.Failed.By = text(e.Tag)
		}
	}
	if h.level == trace.LevelFramework {
		m.Reserved = h.reserved
	}
	g := newGroupings()
	for id, b := range h.live {
		if h.level == trace.LevelFramework {
			b.label = h.look.Tags.Index(id)
		}
		g.add(b)
	}
	for tag, bytes := range h.pools {
		if bytes > 0 {
			g.add(block{size: bytes, tag: tag})
		}
	}
	g.list(m, h, text)
}
