package snapshot

import "slices"

// mapping is a segment_map or segment_unmap event.
type mapping struct {
	addr, size uint64
	stream     int64
	pool       int32
	unmap      bool
}

// earlyRanges returns the ranges of expandable segments that were mapped before the history began, by address. A
// byte was mapped then if the first event about it unmaps it, or if there is none and it is mapped at the end.
func earlyRanges(mappings []mapping, segments []segment) []span {
	var owners []span // who says that a range was mapped
	bounds := make([]uint64, 0, 2*(len(mappings)+len(segments)))
	for _, m := range mappings {
		bounds = append(bounds, m.addr, m.addr+m.size)
	}
	for _, s := range segments {
		if s.expandable {
			bounds = append(bounds, s.addr, s.addr+s.size)
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	c := newClaims(bounds)
	for _, m := range mappings {
		owner := int32(0)
		if m.unmap {
			owners = append(owners, span{stream: m.stream, pool: m.pool, mapped: true})
			owner = int32(len(owners))
		}
		c.claim(m.addr, m.size, owner)
	}
	for _, s := range segments {
		if s.expandable {
			owners = append(owners, span{stream: s.stream, pool: s.pool, mapped: true})
			c.claim(s.addr, s.size, int32(len(owners)))
		}
	}
	return c.spans(owners)
}

// claims gives each interval between neighbouring bounds to the first who claims it.
type claims struct {
	bounds []uint64
	owner  []int32 // 0 is none
	next   []int32 // the next unclaimed interval at or after each, found by following it
}

func newClaims(bounds []uint64) *claims {
	c := &claims{bounds: bounds, owner: make([]int32, len(bounds)), next: make([]int32, len(bounds)+1)}
	for i := range c.next {
		c.next[i] = int32(i)
	}
	return c
}

func (c *claims) find(i int32) int32 {
	for c.next[i] != i {
		c.next[i] = c.next[c.next[i]]
		i = c.next[i]
	}
	return i
}

func (c *claims) claim(addr, size uint64, owner int32) {
	from, _ := slices.BinarySearch(c.bounds, addr)
	to, _ := slices.BinarySearch(c.bounds, addr+size)
	for i := c.find(int32(from)); i < int32(to); i = c.find(i) {
		c.owner[i] = owner
		c.next[i] = i + 1
	}
}

// spans returns what was claimed, joining neighbours of one stream and pool.
func (c *claims) spans(owners []span) []span {
	var out []span
	for i := 0; i+1 < len(c.bounds); i++ {
		if c.owner[i] == 0 {
			continue
		}
		s := owners[c.owner[i]-1]
		s.addr, s.size = c.bounds[i], c.bounds[i+1]-c.bounds[i]
		if n := len(out); n > 0 {
			if last := &out[n-1]; last.addr+last.size == s.addr && last.stream == s.stream && last.pool == s.pool {
				last.size += s.size
				continue
			}
		}
		out = append(out, s)
	}
	return out
}
