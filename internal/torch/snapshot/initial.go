package snapshot

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// initial is the state of a device before its history.
type initial struct {
	spans  []span
	blocks []earlyBlock
}

// initial works out the state before the history from what the first event about each address is, and, where there
// is none, from the segments at the end.
//
// The size of an early block is what was asked for. The allocator's block may be larger by what it did not split off,
// which is known of the blocks that are still there at the end.
func (h *history) initial(odd *oddities) initial {
	slices.SortFunc(h.segments, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	in := initial{spans: h.earlySegs, blocks: h.early}
	for i := range h.segments {
		s := &h.segments[i]
		if s.expandable {
			continue
		}
		switch born := h.born[s.addr]; {
		case born > 0:
			s.born = born
		case born < 0:
			odd.unexplained++
		default:
			in.spans = append(in.spans, span{addr: s.addr, size: s.size, stream: s.stream, pool: s.pool})
		}
	}
	in.spans = append(in.spans, earlyRanges(h.mappings, h.segments)...)
	h.addLasting(&in, odd)
	for i := range in.blocks {
		if b := &in.blocks[i]; b.pool < 0 {
			b.pool = h.poolAt(b.addr, 0)
		}
	}
	slices.SortStableFunc(in.spans, func(a, b span) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortStableFunc(in.blocks, func(a, b earlyBlock) int { return cmp.Compare(a.addr, b.addr) })
	return in
}

// addLasting adds the blocks that are live at the end and that no event mentions.
func (h *history) addLasting(in *initial, odd *oddities) {
	matched := 0
	for _, s := range h.segments {
		for _, b := range s.blocks {
			slot, seen := h.slots[b.addr]
			switch {
			case seen && h.states[slot] != blockFree:
				matched++
			case seen || s.born > 0:
				odd.unexplained++
			default:
				in.blocks = append(in.blocks, earlyBlock{
					addr: b.addr, size: b.asked, block: unexplained(b.size, b.asked), stream: s.stream, pool: s.pool, stack: b.stack, slot: -1, pending: b.pending,
				})
			}
		}
	}
	if len(h.segments) == 0 {
		return
	}
	for _, state := range h.states {
		if state != blockFree {
			matched--
		}
	}
	odd.unexplained -= min(matched, 0)
}

// unexplained returns the bytes of a block if they are not those asked for, rounded up.
func unexplained(block uint64, asked int64) int64 {
	if rounded := (asked + requestAlignment - 1) / requestAlignment * requestAlignment; int64(block) == rounded {
		return 0
	}
	return int64(block)
}

// poolAt returns the pool of the segment that held addr at an event, if that segment lasted to the end: earlier ones
// are known only by events, which in the snapshots that have need of this name no pool. The address space of an
// expandable segment is taken to belong to one pool throughout.
func (h *history) poolAt(addr uint64, event int64) int32 {
	i, found := slices.BinarySearchFunc(h.segments, addr, func(s segment, addr uint64) int { return cmp.Compare(s.addr, addr) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	if s := &h.segments[i]; addr-s.addr < s.size && event+1 >= s.born {
		return s.pool
	}
	return 0
}

// first returns the time of the first event; false when there is none.
func (h *history) first() (int64, bool, error) {
	c := cursor{spool: &h.spool}
	ok, err := c.next()
	return c.rec.time, ok, err
}

// op returns the operation that made a span.
func (s *span) op() trace.Op {
	if s.mapped {
		return trace.OpSegmentMap
	}
	return trace.OpSegmentAlloc
}
