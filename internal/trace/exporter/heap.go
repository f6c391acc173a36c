package exporter

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gm/formats/trace"
)

// heap tracks the segments of a device and the blocks in them.
type heap struct {
	*liveBlocks
	segments []*segment // by address
	recorded bool       // the trace records segments
	begun    bool       // all rows that stand for older memory have been read
	ranges   map[uint64]uint64
	round    func(int64) int64 // returns the bytes of the block for a request
}

// newHeap returns an empty heap. If segments are not recorded, all addresses are one segment until guess is called.
func newHeap(recorded bool, round func(int64) int64) *heap {
	h := &heap{liveBlocks: newLiveBlocks(), recorded: recorded, ranges: map[uint64]uint64{}, round: round}
	if !recorded {
		h.segments = []*segment{{size: math.MaxUint64}}
	}
	return h
}

// alloc adds a block; false if it lies in no segment or overlaps another block. whole is the bytes of the allocator's block, 0 or
// less if unknown.
func (h *heap) alloc(e *trace.Event, whole int64) (*block, bool) {
	b := h.liveBlocks.alloc(e)
	b.whole = uint64(max(whole, h.round(b.size)))
	s := h.at(b.addr)
	if s == nil || !s.insert(b, whole > 0 || !h.recorded) {
		h.liveBlocks.done(e.ID)
		return nil, false
	}
	if !h.recorded {
		h.ranges[b.addr] = max(h.ranges[b.addr], b.whole)
	}
	return b, true
}

// done removes a block.
func (h *heap) done(id int64) {
	b := h.live[id]
	if s := h.at(b.addr); s != nil {
		if i, found := slices.BinarySearchFunc(s.blocks, b.addr, blockAt); found {
			s.blocks = slices.Delete(s.blocks, i, i+1)
		}
	}
	h.liveBlocks.done(id)
}

// at returns the segment that contains an address, nil if none does.
func (h *heap) at(addr uint64) *segment {
	i, found := slices.BinarySearchFunc(h.segments, addr, segmentAt)
	if !found {
		i--
	}
	if i < 0 || addr-h.segments[i].addr >= h.segments[i].size {
		return nil
	}
	return h.segments[i]
}

func segmentAt(s *segment, addr uint64) int { return cmp.Compare(s.addr, addr) }
func blockAt(b *block, addr uint64) int     { return cmp.Compare(b.addr, addr) }

// segment processes a row about a segment.
func (h *heap) segment(e *trace.Event) {
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		s := &segment{
			addr: e.Addr, size: uint64(e.Size), stream: e.Stream, pool: e.Pool, stack: e.Stack, expandable: e.Op == trace.OpSegmentMap,
		}
		i, _ := slices.BinarySearchFunc(h.segments, s.addr, segmentAt)
		h.segments = slices.Insert(h.segments, i, s)
		h.merge(i + 1)
		h.merge(i)
	case trace.OpSegmentFree:
		if i, found := slices.BinarySearchFunc(h.segments, e.Addr, segmentAt); found {
			h.segments = slices.Delete(h.segments, i, i+1)
		}
	case trace.OpSegmentUnmap:
		h.unmap(e.Addr, e.Addr+uint64(e.Size))
	}
}

// merge joins a mapped range with the one before if they are adjacent and have the same stream and pool.
func (h *heap) merge(i int) {
	if i < 1 || i >= len(h.segments) {
		return
	}
	a, b := h.segments[i-1], h.segments[i]
	if a.expandable && b.expandable && a.addr+a.size == b.addr && a.stream == b.stream && a.pool == b.pool {
		a.size += b.size
		a.blocks = append(a.blocks, b.blocks...)
		h.segments = slices.Delete(h.segments, i, i+1)
	}
}

// unmap removes addresses from the mapped ranges.
func (h *heap) unmap(from, to uint64) {
	var rest []*segment
	for _, s := range h.segments {
		end := s.addr + s.size
		if !s.expandable || end <= from || s.addr >= to {
			rest = append(rest, s)
			continue
		}
		if s.addr < from {
			rest = append(rest, s.part(s.addr, from))
		}
		if end > to {
			rest = append(rest, s.part(to, end))
		}
	}
	h.segments = rest
}

// gap is the most bytes between two ranges that count as one segment.
const gap = 2 << 20

// guess derives segments from the used addresses, if none are recorded.
func (h *heap) guess() {
	if h.recorded {
		return
	}
	all := h.segments[0]
	h.segments = nil
	from, to := uint64(0), uint64(0)
	for _, addr := range slices.Sorted(maps.Keys(h.ranges)) {
		if to > 0 && addr > to+gap {
			h.segments = append(h.segments, all.part(from, to))
			to = 0
		}
		if to == 0 {
			from = addr
		}
		to = max(to, addr+h.ranges[addr])
	}
	if to > 0 {
		h.segments = append(h.segments, all.part(from, to))
	}
}
