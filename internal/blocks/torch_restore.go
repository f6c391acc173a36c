package blocks

import (
	"fmt"

	"gm/internal/cuda"
)

// Segment is memory that an allocator held before a recording of it began.
type Segment struct {
	Addr       uint64 // as recorded
	Size       int64
	Stream     cuda.Stream
	Pool       Pool
	Expandable bool   // mapped pages of an expandable segment
	Live       []Held // by address
}

// Held is a live block of a Segment.
type Held struct {
	Addr  uint64 // as recorded
	Size  int64  // bytes as requested
	Block int64  // bytes of the block, 0 if they are not known
}

// Restore takes over segments, ordered by address, before the first request. It returns the addresses of their live blocks, in order.
//
// A recording does not say where the free blocks are. What lies between two live blocks counts as free, except for the bytes that the first
// of them is known to take. A gap that is too small to have been split off belongs to the first block.
func (t *Torch) Restore(segments []Segment) ([]cuda.Ptr, error) {
	var ptrs []cuda.Ptr
	for i := 0; i < len(segments); {
		n := 1
		for segments[i].Expandable && i+n < len(segments) && t.sameExpandable(&segments[i], &segments[i+n]) {
			n++
		}
		live, err := t.restore(segments[i : i+n])
		if err != nil {
			return nil, fmt.Errorf("restore the segment at %#x: %w", segments[i].Addr, err)
		}
		ptrs = append(ptrs, live...)
		i += n
	}
	return ptrs, nil
}

// sameExpandable reports whether two mapped ranges may belong to one expandable segment.
func (t *Torch) sameExpandable(a, b *Segment) bool {
	_, total, err := t.dev.MemInfo()
	return err == nil && b.Expandable && a.Stream == b.Stream && a.Pool == b.Pool && t.smallBlocks(a) == t.smallBlocks(b) &&
		b.Addr+uint64(b.Size)-a.Addr <= uint64(total)
}

// smallBlocks reports whether the segment belongs to the small half of its pool: by its blocks, or by the size of its pages.
func (t *Torch) smallBlocks(s *Segment) bool {
	switch {
	case len(s.Live) > 0:
		return s.Live[0].Size <= smallSize
	case s.Expandable:
		return s.Size%t.conf.LargeSegment != 0
	}
	return s.Size == smallSegment
}

// restore adds one segment, or the mapped ranges of one expandable segment.
func (t *Torch) restore(ranges []Segment) ([]cuda.Ptr, error) {
	first := &ranges[0]
	r := request{stream: first.Stream, pool: t.half(first.Pool, smallSize)}
	if !t.smallBlocks(first) {
		r.pool++
	}
	r.lane = t.pools[r.pool].lane(first.Stream)
	if !first.Expandable {
		r.size = first.Size
		b, err := t.takeSegment(&r, first.Size)
		if err != nil {
			return nil, err
		}
		return t.carve(b, first, r.lane)
	}
	b, err := t.reserveExpandable(&r)
	if err != nil {
		return nil, err
	}
	base := t.store.at(b).ptr
	page := t.expandables[t.store.at(b).segment].page
	var ptrs []cuda.Ptr
	for i := range ranges {
		s := &ranges[i]
		if s.Size%page != 0 || int64(s.Addr-first.Addr)%page != 0 {
			return nil, fmt.Errorf("mapped %d bytes at %#x, not whole pages of %d", s.Size, s.Addr, page)
		}
		if hole := int64(base) + int64(s.Addr-first.Addr) - int64(t.store.at(b).ptr); hole > 0 {
			b = t.skipUnmapped(b, hole, r.lane)
		}
		if ok, err := t.mapFront(b, s.Size, r.lane); err != nil {
			return nil, err
		} else if !ok {
			return nil, t.stats.oom(s.Size)
		}
		rest := t.store.at(b).next
		r.lane.free.remove(t.store.at(b).size, t.store.at(b).ptr)
		live, err := t.carve(b, s, r.lane)
		if err != nil {
			return nil, err
		}
		ptrs = append(ptrs, live...)
		b = rest
	}
	return ptrs, nil
}

// skipUnmapped cuts size bytes off the front of unmapped block b and returns the rest.
func (t *Torch) skipUnmapped(b int32, size int64, l *lane) int32 {
	l.unmapped.remove(0, t.store.at(b).ptr)
	hole := t.store.splitFront(b, size)
	l.unmapped.insert(free{ptr: t.store.at(hole).ptr, id: hole})
	l.unmapped.insert(free{ptr: t.store.at(b).ptr, id: b})
	return b
}

// carve cuts free block b, in no lane, into the live blocks of s and free ones, and returns the addresses of the live ones.
func (t *Torch) carve(b int32, s *Segment, l *lane) ([]cuda.Ptr, error) {
	base := t.store.at(b).ptr
	small := t.pools[t.store.at(b).pool].small
	end := base + cuda.Ptr(s.Size)
	ptrs := make([]cuda.Ptr, len(s.Live))
	for i, held := range s.Live {
		ptrs[i] = base + cuda.Ptr(held.Addr-s.Addr)
		if gap := int64(ptrs[i] - t.store.at(b).ptr); gap > 0 {
			t.insertFree(t.store.splitFront(b, gap), l)
		}
		next := end
		if i+1 < len(s.Live) {
			next = base + cuda.Ptr(s.Live[i+1].Addr-s.Addr)
		}
		room := int64(next - ptrs[i])
		if room <= 0 {
			return nil, fmt.Errorf("two live blocks at %#x", held.Addr)
		}
		size := max(held.Block, t.conf.RoundSize(held.Size))
		used, last := b, next == end
		if room > size && (held.Block > 0 || t.shouldSplit(room, size, small, s.Expandable)) {
			used, last = t.store.splitFront(b, size), false
		} else if next != end {
			used = t.store.splitFront(b, room)
		}
		u := t.store.at(used)
		u.used = true
		t.index.Put(u.ptr, used)
		t.stats.allocate(u.size)
		if last {
			return ptrs, nil
		}
	}
	t.insertFree(b, l)
	return ptrs, nil
}
