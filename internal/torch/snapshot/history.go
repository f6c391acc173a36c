package snapshot

import "gm/formats/trace"

// history is what the first pass keeps of one device.
type history struct {
	device   int32
	spool    spool
	segments []segment // at the end

	// Each distinct address of a block has a slot, so that the second pass needs no map.
	slots  map[uint64]int32
	addrs  []uint64
	states []blockState
	early  []earlyBlock // whose first event is a free: they are older than the history

	born      map[uint64]int64 // segments by address: as in segment.born, or -1 once freed
	earlySegs []span           // whose first event is that they are freed
	mappings  []mapping
}

// blockState is what has become of a slot.
type blockState uint8

const (
	blockFree blockState = iota
	blockLive
	blockPending
)

// earlyBlock is a block that is older than the history.
type earlyBlock struct {
	addr    uint64
	size    int64 // bytes that were asked for
	block   int64 // bytes of the block, 0 if rounding explains them or they are not known
	stream  int64
	pool    int32 // -1 when unknown
	stack   int32
	slot    int32 // -1 when no event is about it
	pending bool
}

// span is a segment, or a mapped range of an expandable one, that is older than the history.
type span struct {
	addr, size uint64
	stream     int64
	pool       int32 // -1 when unknown
	mapped     bool
}

func newHistory(device int32, room *int) *history {
	return &history{
		device: device,
		spool:  spool{room: room},
		slots:  make(map[uint64]int32),
		born:   make(map[uint64]int64),
	}
}

// add takes the next event, and returns how many things it has to remember for it.
func (h *history) add(r record) (int, error) {
	before := h.remembered()
	switch r.op {
	case trace.OpAlloc, trace.OpFreeRequested, trace.OpFreeCompleted:
		r.addr = uint64(h.addBlock(&r))
	case trace.OpSegmentAlloc:
		h.born[r.addr] = h.spool.count + 1
	case trace.OpSegmentFree:
		if _, seen := h.born[r.addr]; !seen {
			h.earlySegs = append(h.earlySegs, span{addr: r.addr, size: uint64(r.size), stream: r.stream, pool: r.pool})
		}
		h.born[r.addr] = -1
	case trace.OpSegmentMap, trace.OpSegmentUnmap:
		h.mappings = append(h.mappings, mapping{
			addr: r.addr, size: uint64(r.size), stream: r.stream, pool: r.pool, unmap: r.op == trace.OpSegmentUnmap,
		})
	}
	return h.remembered() - before, h.spool.append(r)
}

func (h *history) remembered() int {
	return len(h.addrs) + len(h.early) + len(h.born) + len(h.earlySegs) + len(h.mappings)
}

// addBlock follows a block and returns its slot.
func (h *history) addBlock(r *record) int32 {
	slot, seen := h.slots[r.addr]
	if !seen {
		slot = int32(len(h.addrs))
		h.slots[r.addr] = slot
		h.addrs = append(h.addrs, r.addr)
		h.states = append(h.states, blockFree)
		if r.op != trace.OpAlloc && r.size > 0 {
			h.early = append(h.early, earlyBlock{
				addr: r.addr, size: r.size, stream: r.stream, pool: r.pool, slot: slot,
				pending: r.op == trace.OpFreeCompleted,
			})
		}
	}
	switch r.op {
	case trace.OpAlloc:
		h.states[slot] = blockLive
	case trace.OpFreeRequested:
		h.states[slot] = blockPending
	default:
		h.states[slot] = blockFree
	}
	return slot
}
