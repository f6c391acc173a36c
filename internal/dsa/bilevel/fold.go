package bilevel

import (
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/repeats"
)

// fold is a problem with its repeated parts put into boxes. A box holds buffers of one occurrence of a part whose lives follow one another
// without a break: buffers that are separated in time have separate boxes, unless boxes are whole.
type fold struct {
	p       *dsa.Problem
	align   int64
	classes []class
	boxes   []box
	at      [2]int32           // the part that is being boxed, and its occurrence
	known   map[uint64][]int32 // classes by the hash of their lives
	order   []int64            // of each buffer among the births of its box
	whole   bool               // an occurrence is one box
}

// class stands for all boxes with the same content.
type class struct {
	lives   []int64 // births and deaths in order: for a birth the size in units, for the death of the kth buffer ^k
	boxes   int     // how many there are
	offsets []int64 // bytes, of the buffers in the order of their births; nil as long as there is no layout
	height  int64   // bytes
}

// box is one occurrence of a class.
type box struct {
	class   int32
	at      [2]int32 // the part, and the occurrence of it
	buffers []int32  // in the order of their births
}

// leastPart is the least number of events of a part.
const leastPart = 8

// foldParts finds repeated parts and puts the buffers that live within them into boxes. A box that occurs once, or holds a single buffer,
// is dropped.
func foldParts(p *dsa.Problem, e *events, whole bool) *fold {
	f := &fold{p: p, align: p.Align, known: map[uint64][]int32{}, order: make([]int64, p.Len()), whole: whole}
	for i, part := range repeats.Find(e.symbols(p), e.mate, leastPart) {
		for k, at := range part.At {
			f.at = [2]int32{int32(i), int32(k)}
			f.occurrence(e, int32(at), int32(at+part.Length))
		}
	}
	f.boxes = slices.DeleteFunc(f.boxes, func(b box) bool { return f.classes[b.class].boxes < 2 })
	return f
}

// occurrence puts the buffers that live within the events [lo, hi) into boxes.
func (f *fold) occurrence(e *events, lo, hi int32) {
	var lives []int64
	var buffers []int32
	live := 0
	for at := lo; at < hi; at++ {
		mate, i := e.mate[at], e.buffer[at]
		if mate < lo || mate >= hi {
			continue
		}
		if mate > at {
			f.order[i] = int64(len(buffers))
			lives, buffers = append(lives, f.p.Units(int(i))), append(buffers, i)
			live++
			continue
		}
		lives = append(lives, ^f.order[i])
		if live--; live > 0 || f.whole {
			continue
		}
		f.box(lives, buffers)
		lives, buffers = lives[:0], buffers[:0]
	}
	f.box(lives, buffers)
}

// box makes a box of buffers with these lives, if there are several.
func (f *fold) box(lives []int64, buffers []int32) {
	if len(buffers) > 1 {
		f.boxes = append(f.boxes, box{f.classOf(lives), f.at, slices.Clone(buffers)})
	}
}

// classOf returns the class of boxes with these lives, and counts one more of it.
func (f *fold) classOf(lives []int64) int32 {
	sum := uint64(len(lives))
	for _, life := range lives {
		sum = (sum ^ sum>>32 ^ uint64(life)) * 0x9e3779b97f4a7c15
	}
	for _, c := range f.known[sum] {
		if slices.Equal(f.classes[c].lives, lives) {
			f.classes[c].boxes++
			return c
		}
	}
	c := int32(len(f.classes))
	f.known[sum] = append(f.known[sum], c)
	f.classes = append(f.classes, class{lives: slices.Clone(lives), boxes: 1})
	return c
}

// problem returns the first level: the buffers of a box, in the order of their births.
func (c *class) problem(align int64) *dsa.Problem {
	n := len(c.lives) / 2
	p := &dsa.Problem{Start: make([]int64, 0, n), End: make([]int64, n), Size: make([]int64, 0, n), Align: align}
	for at, life := range c.lives {
		if life < 0 {
			p.End[^life] = int64(at)
			continue
		}
		p.Start, p.Size = append(p.Start, int64(at)), append(p.Size, life*align)
	}
	return p
}

// second returns the second level: the buffers outside boxes, in their order, then one buffer per box. Boxes of classes
// without a layout are taken apart.
func (f *fold) second() *dsa.Problem {
	f.boxes = slices.DeleteFunc(f.boxes, func(b box) bool { return f.classes[b.class].offsets == nil })
	p := &dsa.Problem{Align: f.align}
	add := func(start, end, size int64) {
		p.Start, p.End, p.Size = append(p.Start, start), append(p.End, end), append(p.Size, size)
	}
	for i, boxed := range f.boxed() {
		if !boxed {
			add(f.p.Start[i], f.p.End[i], f.p.Size[i])
		}
	}
	for _, b := range f.boxes {
		end := f.p.End[b.buffers[0]]
		for _, i := range b.buffers {
			end = max(end, f.p.End[i])
		}
		add(f.p.Start[b.buffers[0]], end, f.classes[b.class].height)
	}
	return p
}

// takeApart takes apart the boxes that live at a moment when the second level has more than limit bytes. It reports whether there were
// any.
func (f *fold) takeApart(second *dsa.Problem, limit int64) bool {
	e := newEvents(second)
	over := make([]int32, len(e.buffer)+1) // moments above the limit up to an event
	span := make([][2]int32, second.Len())
	live := int64(0)
	for at, i := range e.buffer {
		over[at+1] = over[at]
		if size := second.Units(int(i)) * f.align; int(e.mate[at]) > at {
			span[i] = [2]int32{int32(at), e.mate[at]}
			live += size
		} else {
			live -= size
		}
		if live > limit {
			over[at+1]++
		}
	}
	span = span[len(span)-len(f.boxes):]
	kept := f.boxes[:0]
	for k, b := range f.boxes {
		if over[span[k][0]] == over[span[k][1]] {
			kept = append(kept, b)
		}
	}
	apart := len(kept) < len(f.boxes)
	f.boxes = kept
	return apart
}

// boxed reports for each buffer whether it is in a box.
func (f *fold) boxed() []bool {
	boxed := make([]bool, f.p.Len())
	for _, b := range f.boxes {
		for _, i := range b.buffers {
			boxed[i] = true
		}
	}
	return boxed
}

// unfold converts the offsets of the second level to those of the problem.
func (f *fold) unfold(second []int64) []int64 {
	offsets := make([]int64, f.p.Len())
	for i, boxed := range f.boxed() {
		if !boxed {
			offsets[i] = second[0]
			second = second[1:]
		}
	}
	for k, b := range f.boxes {
		for order, i := range b.buffers {
			offsets[i] = second[k] + f.classes[b.class].offsets[order]
		}
	}
	return offsets
}

// folding returns all counts except that of the second level.
func (f *fold) folding() Folding {
	s := Folding{Boxes: len(f.boxes)}
	parts, occurrences, classes := map[int32]bool{}, map[[2]int32]bool{}, map[int32]bool{}
	for _, b := range f.boxes {
		parts[b.at[0]], occurrences[b.at] = true, true
		s.Buffers += len(b.buffers)
		if !classes[b.class] {
			classes[b.class] = true
			s.First += len(b.buffers)
		}
	}
	s.Parts, s.Occurrences = len(parts), len(occurrences)
	return s
}
