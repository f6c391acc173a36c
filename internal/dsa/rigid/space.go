package rigid

import (
	"slices"

	"gm/internal/dsa/residue"
)

// Space is a set of placed rectangles, ordered by offset.
type Space []Block

// Block is a placed rectangle.
type Block struct {
	offset, End int64 // units
	Lo, Hi      int32 // sections
	Item        int32
}

func newBlock(r *Rect, base int64) Block {
	offset := base + r.Low
	return Block{offset: offset, End: offset + r.Size, Lo: r.Lo, Hi: r.Hi, Item: r.Item}
}

// blocksOf appends the rectangles of an item at a base to dst.
func blocksOf(dst []Block, rects []Rect, base int64) []Block {
	for i := range rects {
		dst = append(dst, newBlock(&rects[i], base))
	}
	return dst
}

// IndexFrom returns the index of the first block that is not below an offset.
func (s Space) IndexFrom(offset int64) int {
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
func (s Space) find(b Block) int {
	i := s.IndexFrom(b.offset)
	for s[i] != b {
		i++
	}
	return i
}

func (s *Space) insert(b Block) {
	*s = slices.Insert(*s, s.IndexFrom(b.offset), b)
}

// replace replaces a block by another.
func (s Space) replace(old, b Block) {
	from, to := s.find(old), s.IndexFrom(b.offset)
	if to > from {
		to--
		copy(s[from:to], s[from+1:])
	} else {
		copy(s[to+1:], s[to:from])
	}
	s[to] = b
}

// raise returns the lowest base, not below the given one, such that a rectangle overlaps none of an item of lower
// position, and how many blocks it visited.
func (s Space) raise(r *Rect, c residue.Class, base int64, position []int32) (raised int64, looked int) {
	if c.Step&(c.Step-1) != 0 {
		return s.raiseSlowly(r, c, base, position)
	}
	offset, own, lo, hi, size := base+r.Low, position[r.Item], r.Lo, r.Hi, r.Size
	rest := (c.Remainder + r.Low) & (c.Step - 1)
	up, steps := c.Step-1-rest, -c.Step // to round up to an offset with that remainder
	i := 0
	for ; i < len(s) && s[i].offset-offset < size; i++ {
		b := &s[i]
		// Negative when the block conflicts. That is unpredictable, so a branch would cost more.
		conflict := (b.Lo - hi) & (lo - b.Hi) & (position[b.Item] - own)
		offset = max(offset, ((b.End+up)&steps+rest)&int64(conflict>>31))
	}
	return offset - r.Low, i
}

// raiseSlowly is raise for any step.
func (s Space) raiseSlowly(r *Rect, c residue.Class, base int64, position []int32) (raised int64, looked int) {
	offset, own := base+r.Low, position[r.Item]
	i := 0
	for ; i < len(s) && s[i].offset-offset < r.Size; i++ {
		b := &s[i]
		if b.Lo < r.Hi && b.Hi > r.Lo && b.End > offset && position[b.Item] < own {
			offset = c.AtLeast(b.End-r.Low) + r.Low
		}
	}
	return offset - r.Low, i
}
