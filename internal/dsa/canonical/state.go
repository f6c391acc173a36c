package canonical

import (
	"gm/internal/dsa/sections"
)

// state is a part of a layout, from the bottom up.
type state struct {
	in       *sections.Instance
	capacity int64
	over     [][]int32 // the buffers of each section
	starts   [][]int32 // the buffers whose first section it is

	// By buffer.
	offset []int64 // units; unplaced before a buffer is placed
	least  []int64 // units: the least offset above those placed so far

	// By section.
	floor []int64 // units: no buffer that is left lies lower
	left  []int64 // units: the size of the buffers left
	cross []int32 // the buffers left that also live in the section before

	dirty []int32
	marks []bool
	trail []change
	work  int64 // buffers and sections looked at
}

const unplaced = -1

// change is a value before it was changed, or a placement.
type change struct {
	kind  kind
	index int32
	old   int64
}

type kind int8

const (
	placement kind = iota
	leastOf
	floorOf
)

func newState(in *sections.Instance) *state {
	n, sections := in.Len(), in.Sections()
	s := &state{
		in: in, over: make([][]int32, sections), starts: make([][]int32, sections), offset: make([]int64, n), least: make([]int64, n),
		floor: make([]int64, sections), left: make([]int64, sections), cross: make([]int32, sections), marks: make([]bool, sections),
	}
	for i := range s.offset {
		lo, hi := in.Lo[i], in.Hi[i]
		s.starts[lo] = append(s.starts[lo], int32(i))
		for t := lo; t < hi; t++ {
			s.over[t] = append(s.over[t], int32(i))
		}
	}
	return s
}

// reset removes all buffers.
func (s *state) reset(capacity int64) {
	s.capacity = capacity
	clear(s.floor)
	clear(s.left)
	clear(s.cross)
	clear(s.least)
	s.trail = s.trail[:0]
	for i := range s.offset {
		s.unplace(int32(i))
	}
}

// place puts a buffer at its least offset.
func (s *state) place(i int32) {
	at, size := s.least[i], s.in.Size[i]
	lo, hi := s.in.Lo[i], s.in.Hi[i]
	s.offset[i] = at
	s.trail = append(s.trail, change{placement, i, 0})
	for t := lo; t < hi; t++ {
		s.left[t] -= size
		s.cross[t]--
		s.set(t, at+size)
	}
	s.cross[lo]++
	s.lift(s.over[lo], at+size)
	for t := lo + 1; t < hi; t++ {
		s.lift(s.starts[t], at+size)
	}
	s.raise()
}

// unplace counts a buffer as left.
func (s *state) unplace(i int32) {
	size, lo, hi := s.in.Size[i], s.in.Lo[i], s.in.Hi[i]
	s.offset[i] = unplaced
	for t := lo; t < hi; t++ {
		s.left[t] += size
		s.cross[t]++
	}
	s.cross[lo]--
}

func (s *state) set(t int32, floor int64) {
	s.trail = append(s.trail, change{floorOf, t, s.floor[t]})
	s.floor[t] = floor
	s.mark(t)
}

func (s *state) mark(t int32) {
	if !s.marks[t] {
		s.marks[t] = true
		s.dirty = append(s.dirty, t)
	}
}

// lift raises the least offsets of buffers.
func (s *state) lift(buffers []int32, to int64) {
	s.work += int64(len(buffers))
	for _, i := range buffers {
		old := s.least[i]
		if old >= to || s.offset[i] != unplaced {
			continue
		}
		s.trail = append(s.trail, change{leastOf, i, old})
		s.least[i] = to
		for t := s.in.Lo[i]; t < s.in.Hi[i]; t++ {
			if s.floor[t] == old {
				s.mark(t)
			}
		}
	}
}

// raise raises the floors of sections to the least offset of a buffer left.
func (s *state) raise() {
	for _, t := range s.dirty {
		s.marks[t] = false
		least := int64(unplaced)
		for _, i := range s.over[t] {
			s.work++
			if s.offset[i] == unplaced && (least < 0 || s.least[i] < least) {
				if least = s.least[i]; least <= s.floor[t] {
					break
				}
			}
		}
		if least > s.floor[t] {
			s.trail = append(s.trail, change{floorOf, t, s.floor[t]})
			s.floor[t] = least
		}
	}
	s.dirty = s.dirty[:0]
}

// undo reverts changes until the trail has the given length.
func (s *state) undo(length int) {
	for k := len(s.trail) - 1; k >= length; k-- {
		switch c := s.trail[k]; c.kind {
		case placement:
			s.unplace(c.index)
		case leastOf:
			s.least[c.index] = c.old
		case floorOf:
			s.floor[c.index] = c.old
		}
	}
	s.trail = s.trail[:length]
}

// fits reports whether the buffers left over the sections [x, y) fit below the capacity, if none lies below a height.
func (s *state) fits(x, y int32, height int64) bool {
	for t := x; t < y; t++ {
		if max(s.floor[t], height)+s.left[t] > s.capacity {
			return false
		}
	}
	return true
}
