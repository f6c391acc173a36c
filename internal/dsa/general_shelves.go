package dsa

import (
	"cmp"
	"slices"
)

// shelves hold the rectangles that have their place. The first level has all of them, each further one cuts time into more
// stretches and has, for each, those that live in it: what a short life is in conflict with is found among few.
type shelves struct {
	levels []shelf
	looked int64 // blocks that were looked at or moved, ever: what the time goes with
}

// shelf is a level: stretch i is of the sections [i*width, (i+1)*width).
type shelf struct {
	width     int32
	stretches []space
}

const (
	shelfFactor = 8   // stretches of a level within one of the level before
	shelfItems  = 512 // that a stretch should have at least
)

// newShelves returns empty shelves that suit a model.
func newShelves(m *model) shelves {
	var s shelves
	sections := int32(max(1, m.sections()))
	for parts := 1; parts == 1 || len(m.items)/parts >= shelfItems; parts *= shelfFactor {
		width := max(1, (sections+int32(parts)-1)/int32(parts))
		s.levels = append(s.levels, shelf{width, make([]space, (sections+width-1)/width)})
	}
	return s
}

// around returns the smallest stretch that a rectangle lives within.
func (s *shelves) around(r *rect) space {
	for k := len(s.levels) - 1; k > 0; k-- {
		l := &s.levels[k]
		if i := r.lo / l.width; i == (r.hi-1)/l.width {
			return l.stretches[i]
		}
	}
	return s.levels[0].stretches[0]
}

// insert adds the rectangles of an item at a base.
func (s *shelves) insert(rects []rect, base int64) {
	if len(rects) > max(manyRects, len(s.levels[0].stretches[0])/16) {
		s.insertAll(blocksOf(nil, rects, base))
		return
	}
	for i := range rects {
		b := newBlock(&rects[i], base)
		for _, l := range s.levels {
			for k := b.lo / l.width; k <= (b.hi-1)/l.width; k++ {
				l.stretches[k].insert(b)
				s.looked += int64(len(l.stretches[k]) / 16)
			}
		}
	}
}

// manyRects is from how many rectangles on, when there are not many more already, it takes less time to sort all anew than to
// insert one after another.
const manyRects = 64

// insertAll adds many blocks at once.
func (s *shelves) insertAll(blocks []block) {
	for _, l := range s.levels {
		for _, b := range blocks {
			for k := b.lo / l.width; k <= (b.hi-1)/l.width; k++ {
				l.stretches[k] = append(l.stretches[k], b)
			}
		}
		for _, stretch := range l.stretches {
			slices.SortFunc(stretch, func(a, b block) int { return cmp.Compare(a.offset, b.offset) })
			s.looked += int64(len(stretch))
		}
	}
}

// move gives the rectangles of an item another base.
func (s *shelves) move(rects []rect, from, to int64) {
	for i := range rects {
		old, b := newBlock(&rects[i], from), newBlock(&rects[i], to)
		for _, l := range s.levels {
			for k := b.lo / l.width; k <= (b.hi-1)/l.width; k++ {
				l.stretches[k].replace(old, b)
				s.looked += moveCost
			}
		}
	}
}

// moveCost is what a move takes, in blocks that can be looked at meanwhile.
const moveCost = 16

// fit returns the lowest base for an item such that none of its rectangles overlaps one of an item of lower position.
func (s *shelves) fit(m *model, item int32, position []int32) int64 {
	it := &m.items[item]
	base := it.rest
	for settled, i := int32(0), it.first; settled < it.last-it.first; settled++ {
		r := &m.rects[i]
		raised, looked := s.around(r).raise(r, it.congruence, base, position)
		if raised > base {
			base, settled = raised, 0
		}
		s.looked += int64(looked)
		if i++; i == it.last {
			i = it.first
		}
	}
	return base
}
