package exact

import "slices"

// wall is the floor of a section without remaining buffers.
const wall = int64(1) << 62

// MaxCapacity is the greatest capacity that can be searched, in units.
const MaxCapacity = wall - 1

// Search is the state of a search, and the memory of all attempts.
type Search struct {
	in      Instance
	over    [][]int32 // the buffers over each section, the highest rank first
	starts  [][]int32 // the buffers whose first section it is
	ends    [][]int32 // the buffers whose last section it is
	class   []uint64  // a random number for each buffer, the same for equal ones
	attempt Attempt

	// By buffer.
	offset []int64
	least  []int64 // the least that its offset can still be, the highest floor of its sections; wall when it is placed

	// By section.
	floor []int64  // the minimum of least over its buffers
	left  []int64  // the size of its unplaced buffers
	count []int32  // the number of its unplaced buffers
	cross []int32  // the number of those that also live in the section before
	names []uint64 // the sum of the classes of those that begin here

	weight []float64 // by section: 1, and more for each time that its buffers did not fit, in all attempts

	dirty   []int32 // sections whose floor may be too low
	isDirty []bool
	trail   []change
	failed  memory
	nodes   int64
	work    int64
	unasked int64 // sections of the nodes since Stop was called
}

// change is a step that backtracking undoes: a buffer that was placed, or a least or a floor that was raised.
type change struct {
	kind  kind
	index int32
	old   int64
}

type kind int8

const (
	placing kind = iota
	leastOf
	floorOf
)

// New returns a search of an instance, without memory.
func New(in Instance) *Search {
	n, sections := len(in.Lo), in.Sections
	s := &Search{
		in: in, over: make([][]int32, sections), starts: make([][]int32, sections), ends: make([][]int32, sections), class: make([]uint64, n),
		offset: make([]int64, n), least: make([]int64, n),
		floor: make([]int64, sections), left: make([]int64, sections), count: make([]int32, sections),
		cross: make([]int32, sections), names: make([]uint64, sections), isDirty: make([]bool, sections),
		weight: slices.Repeat([]float64{1}, sections),
	}
	lengths := make([]int32, sections)
	total := 0
	for i := range n {
		for t := in.Lo[i]; t < in.Hi[i]; t++ {
			lengths[t]++
			total++
		}
		s.starts[in.Lo[i]] = append(s.starts[in.Lo[i]], int32(i))
		s.ends[in.Hi[i]-1] = append(s.ends[in.Hi[i]-1], int32(i))
		s.class[i] = hash(hash(uint64(in.Lo[i])<<32|uint64(in.Hi[i])) + uint64(in.Size[i]))
	}
	room := make([]int32, total)
	for t, length := range lengths {
		s.over[t], room = room[:length:length], room[length:]
	}
	return s
}

// begin removes all buffers and orders them by the ranks of the attempt.
func (s *Search) begin() {
	order := make([]int32, len(s.offset))
	for i := range order {
		order[i] = int32(i)
	}
	rank := s.attempt.Rank
	slices.SortFunc(order, func(i, j int32) int { return int(rank[j]) - int(rank[i]) })
	for t := range s.over {
		s.over[t] = s.over[t][:0]
		s.floor[t], s.left[t], s.count[t], s.cross[t], s.names[t] = 0, 0, 0, 0, 0
	}
	for _, i := range order {
		s.unplace(i)
		s.least[i] = 0
		for t := s.in.Lo[i]; t < s.in.Hi[i]; t++ {
			s.over[t] = append(s.over[t], i)
		}
	}
	for t := range s.floor {
		s.touch(int32(t))
	}
	s.trail = s.trail[:0]
}

// place places a buffer at the given height.
func (s *Search) place(i int32, at int64) {
	s.trail = append(s.trail, change{placing, i, s.least[i]})
	s.offset[i], s.least[i] = at, wall
	size, lo, hi := s.in.Size[i], s.in.Lo[i], s.in.Hi[i]
	s.names[lo] -= s.class[i]
	for t := lo; t < hi; t++ {
		s.left[t] -= size
		s.count[t]--
		s.cross[t]--
	}
	s.cross[lo]++
	s.raise(lo, hi, at+size)
}

// unplace removes a buffer.
func (s *Search) unplace(i int32) {
	size, lo, hi := s.in.Size[i], s.in.Lo[i], s.in.Hi[i]
	s.names[lo] += s.class[i]
	for t := lo; t < hi; t++ {
		s.left[t] += size
		s.count[t]++
		s.cross[t]++
	}
	s.cross[lo]--
}

// raise lifts the floor of the sections [lo, hi).
func (s *Search) raise(lo, hi int32, to int64) {
	s.liftAll(s.over[lo], to)
	for t := lo; t < hi; t++ {
		s.trail = append(s.trail, change{floorOf, t, s.floor[t]})
		s.floor[t] = to
		s.touch(t)
		if t > lo {
			s.liftAll(s.starts[t], to)
		}
	}
}

func (s *Search) liftAll(buffers []int32, to int64) {
	s.work += int64(len(buffers))
	for _, i := range buffers {
		if s.least[i] < to {
			s.lift(i, to)
		}
	}
}

// lift raises the least offset of a buffer.
func (s *Search) lift(i int32, to int64) {
	old := s.least[i]
	s.trail = append(s.trail, change{leastOf, i, old})
	s.least[i] = to
	for t := s.in.Lo[i]; t < s.in.Hi[i]; t++ {
		if s.floor[t] == old {
			s.touch(t)
		}
	}
}

func (s *Search) touch(t int32) {
	if !s.isDirty[t] {
		s.isDirty[t] = true
		s.dirty = append(s.dirty, t)
	}
}

// failure is what one failure adds to the weight of a section.
const failure = 0.4

// settle raises floors until each is the least offset that a buffer over it can have. It returns false when the buffers left
// over a section no longer fit above its floor.
func (s *Search) settle() bool {
	for len(s.dirty) > 0 {
		t := s.dirty[len(s.dirty)-1]
		s.dirty = s.dirty[:len(s.dirty)-1]
		s.isDirty[t] = false
		floor := s.lowest(t)
		if floor > s.floor[t] {
			s.raise(t, t+1, floor)
		}
		if floor < wall && floor+s.left[t] > s.attempt.Capacity {
			s.weight[t] += failure
			s.forget()
			return false
		}
	}
	return true
}

// lowest returns the least offset of a buffer over a section. It stops looking once one equals the floor.
func (s *Search) lowest(t int32) int64 {
	least := wall
	for _, i := range s.over[t] {
		if s.least[i] < least {
			if least = s.least[i]; least <= s.floor[t] {
				break
			}
		}
	}
	return least
}

// forget drops the sections that remain to be settled, when a state is abandoned.
func (s *Search) forget() {
	for _, t := range s.dirty {
		s.isDirty[t] = false
	}
	s.dirty = s.dirty[:0]
}

// undo reverts changes until the trail has the given length.
func (s *Search) undo(length int) {
	for k := len(s.trail) - 1; k >= length; k-- {
		switch c := s.trail[k]; c.kind {
		case placing:
			s.unplace(c.index)
			s.least[c.index] = c.old
		case leastOf:
			s.least[c.index] = c.old
		case floorOf:
			s.floor[c.index] = c.old
		}
	}
	s.trail = s.trail[:length]
}
