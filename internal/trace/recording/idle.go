package recording

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// idleSegments follows a recording to distinguish an emptied cache from segments that were released to make room for a request. The
// cache is empty when no segment is entirely free and no free is pending, and Empty releases segments in an order of its own.
// Private pools keep their segments.
type idleSegments struct {
	segments []usedSegment // by address
	idle     int
	pending  int              // frees that are requested but not completed
	homes    map[int64]uint64 // address of the segment of a live block, by id

	last   usedSegment // released by the last row, if size is not 0
	sorted bool        // the segments released since the last row of another kind are in Empty's order
}

type usedSegment struct {
	addr, size uint64
	stream     uint64
	live       int
}

func newIdleSegments() *idleSegments { return &idleSegments{homes: map[int64]uint64{}} }

// find returns the index at which the segment that contains addr is, or would be inserted, and whether it is there.
func (s *idleSegments) find(addr uint64) (int, bool) {
	i, exact := slices.BinarySearchFunc(s.segments, addr, func(s usedSegment, addr uint64) int { return cmp.Compare(s.addr, addr) })
	if exact {
		return i, true
	}
	return i - 1, i > 0 && addr-s.segments[i-1].addr < s.segments[i-1].size
}

// emptied reports whether the segments that were released last are an emptied cache.
func (s *idleSegments) emptied() bool { return s.sorted && s.idle == 0 && s.pending == 0 }

// add processes one row.
func (s *idleSegments) add(e *trace.Event) {
	if e.Op == trace.OpSegmentFree {
		s.giveBack(e)
		return
	}
	s.last, s.sorted = usedSegment{}, false
	switch e.Op {
	case trace.OpFreeRequested:
		s.pending++
	case trace.OpFreeCompleted:
		s.pending--
		s.free(e.ID)
	case trace.OpFree:
		s.free(e.ID)
	case trace.OpAlloc:
		if i, ok := s.find(e.Addr); ok {
			if s.segments[i].live++; s.segments[i].live == 1 {
				s.idle--
			}
			s.homes[e.ID] = s.segments[i].addr
		}
	case trace.OpSegmentAlloc:
		if e.Pool == 0 {
			i, _ := s.find(e.Addr)
			s.segments = slices.Insert(s.segments, i+1, usedSegment{addr: e.Addr, size: uint64(e.Size), stream: uint64(e.Stream)})
			s.idle++
		}
	}
}

func (s *idleSegments) free(id int64) {
	home, known := s.homes[id]
	delete(s.homes, id)
	if i, ok := s.find(home); ok && known {
		if s.segments[i].live--; s.segments[i].live == 0 {
			s.idle++
		}
	}
}

func (s *idleSegments) giveBack(e *trace.Event) {
	next := usedSegment{addr: e.Addr, size: uint64(e.Size), stream: uint64(e.Stream)}
	s.sorted = s.last.size == 0 || s.sorted && s.last.before(&next)
	s.last = next
	if i, ok := s.find(e.Addr); ok {
		if s.segments[i].live == 0 {
			s.idle--
		}
		s.segments = slices.Delete(s.segments, i, i+1)
	}
}

// smallSegment is the size, in bytes, of the segments of PyTorch's small pools, which are released last.
const smallSegment = 2 << 20

// before reports whether Empty releases s before t.
func (s *usedSegment) before(t *usedSegment) bool {
	if small, other := s.size == smallSegment, t.size == smallSegment; small != other {
		return other
	}
	return cmp.Or(cmp.Compare(s.stream, t.stream), cmp.Compare(s.size, t.size), cmp.Compare(s.addr, t.addr)) < 0
}
