package page

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// openSegments are the segments of a part that exist now, by address, disjoint.
type openSegments []segment

// maxSegments is the most segments of a part, over all its time, that are shown.
const maxSegments = 1 << 17

// add processes a row about segments.
func (o *openSegments) add(p *part, e *trace.Event, stream int32) {
	if e.Addr == 0 || e.Size <= 0 || len(p.segments) >= maxSegments {
		return
	}
	low, high, now := e.Addr, e.Addr+uint64(e.Size), int32(len(p.events))
	from, _ := slices.BinarySearchFunc(*o, low, func(s segment, low uint64) int {
		if s.high <= low {
			return -1
		}
		return 1
	})
	to := from
	var left []segment
	for ; to < len(*o) && (*o)[to].low < high; to++ {
		s := (*o)[to]
		p.close(s, now)
		if s.low < low {
			left = append(left, segment{now, never, s.low, low, s.stream})
		}
		if s.high > high {
			left = append(left, segment{now, never, high, s.high, s.stream})
		}
	}
	if e.Op == trace.OpSegmentAlloc || e.Op == trace.OpSegmentMap {
		left = append(left, segment{now, never, low, high, stream})
		slices.SortFunc(left, func(a, b segment) int { return cmp.Compare(a.low, b.low) })
	}
	*o = slices.Replace(*o, from, to, left...)
}

// close notes a segment that existed up to a position.
func (p *part) close(s segment, now int32) {
	if s.from < now {
		s.to = now
		p.segments = append(p.segments, s)
	}
}

// finish notes the segments that are left, joins neighbours that exist for the same time, and sorts all by time.
func (o openSegments) finish(p *part) {
	all := append(p.segments, o...)
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.low, b.low))
	})
	p.segments = all[:0]
	for _, s := range all {
		if n := len(p.segments); n > 0 {
			if last := &p.segments[n-1]; last.from == s.from && last.to == s.to && last.high == s.low && last.stream == s.stream {
				last.high = s.high
				continue
			}
		}
		p.segments = append(p.segments, s)
	}
}
