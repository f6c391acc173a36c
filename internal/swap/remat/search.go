package remat

import (
	"math/rand/v2"
	"slices"
	"time"

	"gm/internal/swap"
)

// How long a search goes on: so many rounds, and so much work, a few seconds'. Each of the two schedules to begin with may take as much, and more
// for a step of more operators.
const (
	mostRounds = 3000
	eachRounds = 20 // of a tensor that can be recomputed
	mostWork   = 1e8
	manyOps    = 2500
	untilFound = 4 // of the work, the part in which there has to be a schedule
)

// search improves a schedule (ruin and recreate; Schrimpf et al., J. Comput. Phys. 2000): each round holds a few tensors that are dropped, drops
// others for them, and holds what fits then. What is not much worse than the best is gone on with, less and less so.
type search struct {
	*state
	r     *rand.Rand
	found bool          // a schedule for which memory suffices
	best  []swap.Action // of those
	least time.Duration // that it recomputes for
}

func newSearch(s *state) *search {
	return &search{state: s, r: rand.New(rand.NewPCG(1, 2))}
}

// slack is how much worse than the best a schedule may be that the search goes on with, at first.
const slack = 0.01

// run returns the best schedule that it finds.
func (s *search) run(rounds int, work int64) ([]swap.Action, error) {
	s.keep()
	from := s.work
	s.most = from + work
	rounds = min(rounds, eachRounds*len(s.able))
	for i := 0; i < rounds && s.work-from < work && (s.found || s.work-from < work/untilFound); i++ {
		left := 1 - max(float64(i)/float64(rounds), float64(s.work-from)/float64(work))
		if !s.round(slack * left * s.r.Float64()) {
			break
		}
	}
	if !s.found {
		return nil, s.short()
	}
	return s.best, nil
}

// round changes the schedule, and undoes that if it is worse and takes more time than the best by more than a part of it. It returns false
// if there is nothing to change.
func (s *search) round(worse float64) bool {
	dropped := s.gaps(false, nil)
	if len(dropped) == 0 {
		return false
	}
	step, over, mark := s.step, s.over, s.mark()
	if s.r.IntN(3) == 0 {
		s.swapIn()
	} else {
		s.ruin(dropped)
		taste := s.r
		if s.r.IntN(3) == 0 {
			taste = nil
		}
		s.drop(taste, s.r.IntN(2) == 0)
		s.fill(dropped)
	}
	if s.over > over || s.over == over && s.step > step && float64(s.step) > (1+worse)*float64(s.least) {
		s.back(mark)
		return true
	}
	s.forget()
	s.keep()
	return true
}

// keep notes a schedule that is the best yet.
func (s *search) keep() {
	if s.over == 0 && (!s.found || s.step < s.least) {
		s.found, s.best, s.least = true, s.actions(), s.step
	}
}

// near is how many operators apart two tensors are made or needed at most to be close to each other.
const near = 8

// ruin holds some of what is dropped: one tensor, and a few others, often such as are made or needed close to it.
func (s *search) ruin(dropped []gap) {
	const most = 6 // others and it
	center := dropped[s.r.IntN(len(dropped))]
	others := dropped
	switch made := s.Graph.Tensors[center.t].Made; s.r.IntN(3) {
	case 0:
		others = closeTo(dropped, center.need, func(x gap) int32 { return x.need })
	case 1:
		others = closeTo(dropped, made, func(x gap) int32 { return s.Graph.Tensors[x.t].Made })
	}
	s.hold(center)
	for range s.r.IntN(most) {
		s.hold(others[s.r.IntN(len(others))])
	}
}

// swapIn drops a tensor, and holds others through a part of its gap.
func (s *search) swapIn() {
	all := s.gaps(true, nil)
	if len(all) == 0 {
		return
	}
	x := all[s.r.IntN(len(all))]
	s.flip(x.t, x.need)
	if s.r.IntN(2) == 0 {
		s.holdGhosts(x.t, x.need)
	}
	dropped := s.gaps(false, nil)
	s.fill(slices.DeleteFunc(dropped, func(y gap) bool { return y == x || y.after >= x.need || y.need <= x.after }))
}

// prune holds all that fits, the most expensive first.
func (s *state) prune() {
	all := s.gaps(false, nil)
	slices.SortStableFunc(all, func(a, b gap) int { return int(s.Graph.Tensors[b.t].Recompute - s.Graph.Tensors[a.t].Recompute) })
	for _, x := range all {
		s.refill(x)
	}
}

// closeTo returns the gaps whose operator is close to another one.
func closeTo(all []gap, op int32, of func(gap) int32) []gap {
	return slices.DeleteFunc(slices.Clone(all), func(x gap) bool { return of(x) <= op-near || of(x) >= op+near })
}

// hold holds a tensor through a gap if that still is one.
func (s *search) hold(x gap) {
	if s.isGap(x) && !has(s.held[x.t], int(x.need)) {
		s.flip(x.t, x.need)
	}
}

// fill holds some tensors, in a random order, for which there is memory through the gap that they had.
func (s *search) fill(gaps []gap) {
	const most = 64
	if len(gaps) == 0 {
		return
	}
	for range min(most, len(gaps)) {
		x := gaps[s.r.IntN(len(gaps))]
		s.refill(x)
	}
}

// refill holds a tensor through a gap again if there is memory for it, and no more is recomputed.
func (s *state) refill(x gap) {
	if !s.isGap(x) || has(s.held[x.t], int(x.need)) || !s.fits(x) {
		return
	}
	step, over, mark := s.step, s.over, s.mark()
	if s.flip(x.t, x.need); s.over > over || s.step > step {
		s.back(mark)
	}
}

// fits reports whether there is memory for a tensor through the stages of a gap but the last, in which it is recomputed.
func (s *state) fits(x gap) bool {
	bytes := s.Graph.Tensors[x.t].Bytes
	for v := x.after + 1; v < x.need; v++ {
		if s.start[v]+s.local[v]+bytes > s.room[v] {
			return false
		}
	}
	return true
}
