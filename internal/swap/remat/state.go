package remat

import (
	"slices"
	"time"

	"gm/internal/bitset"
	"gm/internal/swap/draft"
	"gm/internal/swap/evict"
)

// state is a schedule that recomputes, and what it takes. The stages of it are the operators, each with what is recomputed for it right before.
//
// A tensor is needed in some stages: those that read it, and those in which others are recomputed from it. Between two of them it is held or
// not; if it is not it is recomputed in the later one. That is all that there is to choose: the rest follows. So a tensor that is not held
// before a stage nor behind it is recomputed for this stage alone.
type state struct {
	*draft.Problem
	room  []int64       // bytes that each stage may take, beside those of its operator
	able  []int32       // the tensors that can be recomputed
	until []int32       // the last stage in which each tensor can be recomputed whatever else is dropped; -1 for none
	needs []bitset.Set  // of each tensor: its stages, the first being that which writes it
	held  []bitset.Set  // those of them up to which it is held from the one before on
	again [][]int32     // what is recomputed in each stage, in this order
	start []int64       // bytes that are held when each stage begins
	local []int64       // the most bytes that are in use in each stage beyond those
	step  time.Duration // that recomputing takes in all
	over  int64         // bytes beyond the limit, summed over all stages
	work  int64         // what changes took so far, in steps of loops
	most  int64         // nothing more is dropped behind that
	undo  []change
	dirty []int32 // stages to look at again
	marks marks
}

// marks is memory that stages are worked out in.
type marks struct {
	turn   int32
	seen   []int32 // the turn in which each tensor was met
	last   []int32 // the place in again at which it is needed last in the present stage
	queued []bool  // of each stage: it is dirty
	wanted []int32
}

// newState returns the schedule that recomputes nothing.
func newState(p *draft.Problem) *state {
	n, ops := len(p.Graph.Tensors), len(p.Graph.Ops)
	s := &state{
		Problem: p, room: make([]int64, ops), until: evict.Until(p), needs: make([]bitset.Set, n), held: make([]bitset.Set, n),
		again: make([][]int32, ops), start: make([]int64, ops), local: make([]int64, ops),
	}
	s.marks = marks{seen: make([]int32, n), last: make([]int32, n), queued: make([]bool, ops)}
	for i := range p.Graph.Tensors {
		t := &p.Graph.Tensors[i]
		if s.until[i] >= 0 {
			s.able = append(s.able, int32(i))
		}
		s.needs[i], s.held[i] = bitset.New(ops), bitset.New(ops)
		s.needs[i].Add(int(t.Made))
		for _, op := range t.Uses {
			if op > t.Made {
				s.needs[i].Add(int(op))
				s.held[i].Add(int(op))
			}
		}
		for v := t.Made + 1; v <= t.Last(); v++ {
			s.start[v] += t.Bytes
		}
		s.local[t.Made] += t.Bytes
	}
	for v := range int32(ops) {
		s.room[v] = p.Limits.Device - p.Graph.Ops[v].Base
		s.over += s.excess(v)
	}
	return s
}

// excess returns the bytes beyond the limit in a stage.
func (s *state) excess(v int32) int64 {
	return max(0, s.start[v]+s.local[v]-s.room[v])
}

// here reports whether a tensor is held when a stage begins.
func (s *state) here(t, v int32) bool {
	if s.Graph.Tensors[t].Made >= v {
		return false
	}
	next := s.needs[t].After(int(v) - 1)
	return next >= 0 && has(s.held[t], next)
}

// stays reports whether a tensor is held when a stage in which it is needed ends.
func (s *state) stays(t, v int32) bool {
	next := s.needs[t].After(int(v))
	return next >= 0 && has(s.held[t], next)
}

func has(b bitset.Set, i int) bool { return b[0][i/64]>>(i%64)&1 != 0 }

// free reports whether a tensor may be dropped in a gap: it can be recomputed at its end, and its last use does not end there anyway.
func (s *state) free(x gap) bool {
	return x.after != s.Graph.Tensors[x.t].Last() && x.need <= s.until[x.t]
}

// isGap reports whether what was a gap is one still.
func (s *state) isGap(x gap) bool {
	return has(s.needs[x.t], int(x.need)) && int32(s.needs[x.t].Before(int(x.need))) == x.after && s.free(x)
}

// flip holds a tensor up to a stage in which it is needed, from the one before on, or drops it, and works out what follows.
func (s *state) flip(t, need int32) {
	after := int32(s.needs[t].Before(int(need)))
	on := !has(s.held[t], int(need))
	s.setHeld(t, need, on)
	bytes := s.Graph.Tensors[t].Bytes
	if !on {
		bytes = -bytes
	}
	s.shift(after+1, need, bytes)
	s.look(after)
	s.look(need)
	for len(s.dirty) > 0 {
		v := s.dirty[len(s.dirty)-1]
		s.dirty = s.dirty[:len(s.dirty)-1]
		s.marks.queued[v] = false
		s.settle(v)
	}
}

// look has a stage worked out again.
func (s *state) look(v int32) {
	if !s.marks.queued[v] {
		s.marks.queued[v] = true
		s.dirty = append(s.dirty, v)
	}
}

// settle works out what is recomputed in a stage, what that needs, and the memory that it takes.
func (s *state) settle(v int32) {
	again := s.recipe(v)
	if before := s.again[v]; !slices.Equal(again, before) {
		s.replace(v, slices.Clone(again))
		s.marks.turn++
		for _, t := range s.again[v] {
			for _, from := range s.Graph.Tensors[t].From {
				s.marks.seen[from] = s.marks.turn
				if !has(s.needs[from], int(v)) {
					s.ask(from, v)
				}
			}
		}
		for _, t := range before {
			for _, from := range s.Graph.Tensors[t].From {
				if s.marks.seen[from] != s.marks.turn && has(s.needs[from], int(v)) && !s.reads(from, v) {
					s.release(from, v)
				}
			}
		}
	}
	s.measure(v)
}

// recipe returns what is recomputed in a stage, each behind those that it is computed from. It is valid until the next call.
func (s *state) recipe(v int32) []int32 {
	s.marks.turn++
	s.marks.wanted = s.marks.wanted[:0]
	for _, t := range s.Readers.Of(v) {
		s.want(t, v)
	}
	return s.marks.wanted
}

func (s *state) want(t, v int32) {
	if s.marks.seen[t] == s.marks.turn || s.Graph.Tensors[t].Made >= v || s.here(t, v) {
		return
	}
	s.marks.seen[t] = s.marks.turn
	for _, from := range s.Graph.Tensors[t].From {
		s.want(from, v)
	}
	s.marks.wanted = append(s.marks.wanted, t)
}

func (s *state) reads(t, v int32) bool {
	_, found := slices.BinarySearch(s.Graph.Tensors[t].Uses, v)
	return found
}

// ask adds a stage to those in which a tensor is needed. It is held on both sides if it was before.
func (s *state) ask(t, v int32) {
	held := s.here(t, v)
	s.setNeed(t, v, true)
	if held {
		s.setHeld(t, v, true)
	}
}

// release takes a stage from those in which a tensor is needed. It is held from the need before to the one behind if it was on both sides.
// Otherwise it was held up to here, or recomputed here, for nothing, and is not.
func (s *state) release(t, v int32) {
	before, behind := int32(s.needs[t].Before(int(v))), int32(s.needs[t].After(int(v)))
	came, stays := has(s.held[t], int(v)), behind >= 0 && has(s.held[t], int(behind))
	s.setHeld(t, v, false)
	s.setNeed(t, v, false)
	bytes := s.Graph.Tensors[t].Bytes
	switch {
	case came && !stays:
		s.shift(before+1, v, -bytes)
		s.look(before)
	case !came && stays && behind > s.until[t]: // it could not be recomputed there
		s.shift(before+1, v, bytes)
		s.look(before)
	case !came && stays:
		s.setHeld(t, behind, false)
		s.shift(v+1, behind, -bytes)
		s.look(behind)
	}
}

// measure finds the most memory that is in use in a stage: while something is recomputed, or while its operator runs. What is needed no more is
// freed at once.
func (s *state) measure(v int32) {
	again, last := s.again[v], s.marks.last
	s.work += int64(len(again))
	for i, t := range again {
		for _, from := range s.Graph.Tensors[t].From {
			last[from] = int32(i)
		}
	}
	for _, t := range s.Readers.Of(v) {
		last[t] = int32(len(again))
	}
	used, most := int64(0), int64(0)
	for i, t := range again {
		used += s.Graph.Tensors[t].Bytes
		most = max(most, used+s.Graph.Tensors[t].Scratch)
		for _, from := range s.Graph.Tensors[t].From {
			if last[from] == int32(i) {
				last[from] = -1
				if !s.stays(from, v) {
					used -= s.Graph.Tensors[from].Bytes
				}
			}
		}
	}
	for _, t := range s.Writers.Of(v) {
		used += s.Graph.Tensors[t].Bytes
	}
	s.setLocal(v, max(most, used))
}
