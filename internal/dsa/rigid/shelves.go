package rigid

import (
	"cmp"
	"slices"
)

// Shelves hold the rectangles that have their place. The first level has all of them, each further one cuts time into more
// stretches and has, for each, those that live in it: what a short life is in conflict with is found among few.
type Shelves struct {
	levels []shelf
	Looked int64 // blocks that were looked at or moved, ever: what the time goes with
}

// shelf is a level: stretch i is of the sections [i*width, (i+1)*width).
type shelf struct {
	width     int32
	stretches []Space
}

const (
	shelfFactor = 8   // stretches of a level within one of the level before
	shelfItems  = 512 // that a stretch should have at least
)

// newShelves returns empty shelves that suit a model.
func newShelves(m *Model) Shelves {
	var s Shelves
	sections := int32(max(1, m.Sections()))
	for parts := 1; parts == 1 || len(m.Items)/parts >= shelfItems; parts *= shelfFactor {
		width := max(1, (sections+int32(parts)-1)/int32(parts))
		s.levels = append(s.levels, shelf{width, make([]Space, (sections+width-1)/width)})
	}
	return s
}

// Around returns the smallest stretch that a rectangle lives within.
func (s *Shelves) Around(r *Rect) Space {
	for k := len(s.levels) - 1; k > 0; k-- {
		l := &s.levels[k]
		if i := r.Lo / l.width; i == (r.Hi-1)/l.width {
			return l.stretches[i]
		}
	}
	return s.levels[0].stretches[0]
}

// Insert adds the rectangles of an item at a base.
func (s *Shelves) Insert(rects []Rect, base int64) {
	if len(rects) > max(manyRects, len(s.levels[0].stretches[0])/16) {
		s.insertAll(blocksOf(nil, rects, base))
		return
	}
	for i := range rects {
		b := newBlock(&rects[i], base)
		for _, l := range s.levels {
			for k := b.Lo / l.width; k <= (b.Hi-1)/l.width; k++ {
				l.stretches[k].insert(b)
				s.Looked += int64(len(l.stretches[k]) / 16)
			}
		}
	}
}

// manyRects is from how many rectangles on, when there are not many more already, it takes less time to sort all anew than to
// insert one after another.
const manyRects = 64

// insertAll adds many blocks at once.
func (s *Shelves) insertAll(blocks []Block) {
	for _, l := range s.levels {
		for _, b := range blocks {
			for k := b.Lo / l.width; k <= (b.Hi-1)/l.width; k++ {
				l.stretches[k] = append(l.stretches[k], b)
			}
		}
		for _, stretch := range l.stretches {
			slices.SortFunc(stretch, func(a, b Block) int { return cmp.Compare(a.offset, b.offset) })
			s.Looked += int64(len(stretch))
		}
	}
}

// Move gives the rectangles of an item another base.
func (s *Shelves) Move(rects []Rect, from, to int64) {
	for i := range rects {
		old, b := newBlock(&rects[i], from), newBlock(&rects[i], to)
		for _, l := range s.levels {
			for k := b.Lo / l.width; k <= (b.Hi-1)/l.width; k++ {
				l.stretches[k].replace(old, b)
				s.Looked += moveCost
			}
		}
	}
}

// moveCost is what a move takes, in blocks that can be looked at meanwhile.
const moveCost = 16

// Fit returns the lowest base for an item such that none of its rectangles overlaps one of an item of lower position.
func (s *Shelves) Fit(m *Model, item int32, position []int32) int64 {
	it := &m.Items[item]
	base := it.Remainder
	for settled, i := int32(0), it.First; settled < it.last-it.First; settled++ {
		r := &m.Rects[i]
		raised, looked := s.Around(r).raise(r, it.Class, base, position)
		if raised > base {
			base, settled = raised, 0
		}
		s.Looked += int64(looked)
		if i++; i == it.last {
			i = it.First
		}
	}
	return base
}
