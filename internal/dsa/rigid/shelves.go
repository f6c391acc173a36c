package rigid

import (
	"cmp"
	"slices"
)

// Shelves hold the rectangles that have been placed. The first level holds all of them; each further level cuts time into more
// stretches and holds the rectangles of each stretch. So the conflicts of a short life are searched among few rectangles.
type Shelves struct {
	levels  []shelf
	Visited int64 // blocks visited or moved so far: the time is proportional to it
}

// shelf is a level: stretch i covers the sections [i*width, (i+1)*width).
type shelf struct {
	width     int32
	stretches []Space
}

const (
	shelfFactor = 8   // stretches of a level within a stretch of the level before
	shelfItems  = 512 // the least number of items that a stretch should have
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
				s.Visited += int64(len(l.stretches[k]) / 16)
			}
		}
	}
}

// manyRects is the number of rectangles above which it is faster to sort all again than to insert one after another, unless many more
// are placed already.
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
			s.Visited += int64(len(stretch))
		}
	}
}

// Move moves the rectangles of an item to another base.
func (s *Shelves) Move(rects []Rect, from, to int64) {
	for i := range rects {
		old, b := newBlock(&rects[i], from), newBlock(&rects[i], to)
		for _, l := range s.levels {
			for k := b.Lo / l.width; k <= (b.Hi-1)/l.width; k++ {
				l.stretches[k].replace(old, b)
				s.Visited += moveCost
			}
		}
	}
}

// moveCost is the cost of a move, in visited blocks.
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
		s.Visited += int64(looked)
		if i++; i == it.last {
			i = it.First
		}
	}
	return base
}
