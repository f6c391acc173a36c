package dsa

import "slices"

// space is a set of rectangles that have their place, ordered by offset.
type space []block

// block is a rectangle in its place.
type block struct {
	offset, end int64 // units
	lo, hi      int32 // sections
	item        int32
}

func newBlock(r *rect, base int64) block {
	offset := base + r.low
	return block{offset: offset, end: offset + r.size, lo: r.lo, hi: r.hi, item: r.item}
}

// blocksOf appends the rectangles of an item at a base to dst.
func blocksOf(dst []block, rects []rect, base int64) []block {
	for i := range rects {
		dst = append(dst, newBlock(&rects[i], base))
	}
	return dst
}

// seek returns the index of the first block that is not below an offset.
func (s space) seek(offset int64) int {
	lo, n := 0, len(s)
	for n > 0 {
		half := n / 2
		if s[lo+half].offset < offset {
			lo, n = lo+half+1, n-half-1
		} else {
			n = half
		}
	}
	return lo
}

// find returns the index of a block that is in the set.
func (s space) find(b block) int {
	i := s.seek(b.offset)
	for s[i] != b {
		i++
	}
	return i
}

func (s *space) insert(b block) {
	*s = slices.Insert(*s, s.seek(b.offset), b)
}

// replace puts a block in the place of another.
func (s space) replace(old, b block) {
	from, to := s.find(old), s.seek(b.offset)
	if to > from {
		to--
		copy(s[from:to], s[from+1:])
	} else {
		copy(s[to+1:], s[to:from])
	}
	s[to] = b
}

// raise returns the lowest base, not below the given one, such that a rectangle overlaps none of an item of lower
// position, and how many blocks it looked at.
func (s space) raise(r *rect, c congruence, base int64, position []int32) (raised int64, looked int) {
	if c.step&(c.step-1) != 0 {
		return s.raiseSlowly(r, c, base, position)
	}
	offset, own, lo, hi, size := base+r.low, position[r.item], r.lo, r.hi, r.size
	rest := (c.rest + r.low) & (c.step - 1)
	up, steps := c.step-1-rest, -c.step // to round up to an offset that leaves the rest
	i := 0
	for ; i < len(s) && s[i].offset-offset < size; i++ {
		b := &s[i]
		// Negative when the block is in the way: as good as random, so that a branch would cost more.
		conflict := (b.lo - hi) & (lo - b.hi) & (position[b.item] - own)
		offset = max(offset, ((b.end+up)&steps+rest)&int64(conflict>>31))
	}
	return offset - r.low, i
}

// raiseSlowly is raise for any step.
func (s space) raiseSlowly(r *rect, c congruence, base int64, position []int32) (raised int64, looked int) {
	offset, own := base+r.low, position[r.item]
	i := 0
	for ; i < len(s) && s[i].offset-offset < r.size; i++ {
		b := &s[i]
		if b.lo < r.hi && b.hi > r.lo && b.end > offset && position[b.item] < own {
			offset = c.atLeast(b.end-r.low) + r.low
		}
	}
	return offset - r.low, i
}
