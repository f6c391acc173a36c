package policy

import (
	"slices"

	"gm/internal/swap"
)

// planSuperNeurons is SuperNeurons (Wang et al., PPoPP 2018, sections 3.2 to 3.4; Dymem, section 4.1): what convolutions make is cached on the
// device and sent to the host when memory is short, least recently used first, to come back while the convolution before the one that
// needs it runs; what cheap layers make is given back after the forward pass and computed again. With a chain of those the rest of the
// chain is kept, once it is computed, if that takes no more than the operator that takes most by itself; otherwise it is computed again
// for each. Nothing is done where memory suffices.
func planSuperNeurons(p *problem) ([]swap.Action, error) {
	if _, short := over(p.plain, p.limits.Device); short <= 0 {
		return nil, nil
	}
	s := superNeurons{problem: p, trip: map[int32]*trip{}}
	s.dropCheap()
	q := &pager{problem: p, transient: make([]int64, p.ops()), late: true}
	q.rank.of = func(q *pager, i, _ int32) float64 { return -float64(q.state[i].touched) }
	q.pages = s.pages(q.transient)
	if err := q.run(); err != nil {
		return nil, err
	}
	trips := q.trips
	order := slices.Clone(p.byNeed(trips))
	p.lift(trips, order, s.convolutionBefore(trips), q.usage)
	for _, x := range s.cheap {
		trips = append(trips, *s.trip[x.tensor])
	}
	return p.compile(trips, s.gone), nil
}

type superNeurons struct {
	*problem
	cheap []gap
	trip  map[int32]*trip // of those
}

// gone says that a tensor is not on the device at an operator and has to be computed again.
func (s *superNeurons) gone(t, op int32) bool {
	x := s.trip[t]
	return s.remake.dead(t, op) || x != nil && x.free <= op && op < x.need
}

// isCheap says whether the operator that makes a tensor is one that SuperNeurons runs again.
func (s *superNeurons) isCheap(t int32) bool {
	kind := s.graph.Ops[s.graph.Tensors[t].Made].Type
	return features(kind) && kind != swap.Conv
}

// dropCheap finds what is computed again, and when: what cheap layers alone make of something that is kept.
func (s *superNeurons) dropCheap() {
	var r recipe
	for _, x := range s.mainGaps() {
		_, _, able := s.remake.price(&r, x.tensor, x.before)
		if able && s.isCheap(x.tensor) && !slices.ContainsFunc(r.ghosts, func(t int32) bool { return !s.isCheap(t) }) {
			s.cheap = append(s.cheap, x)
			s.trip[x.tensor] = &trip{tensor: x.tensor, after: x.after, free: x.after + 1, back: x.before, need: x.before}
		}
	}
	slices.SortFunc(s.cheap, func(a, b gap) int { return int(s.remake.rank[b.tensor] - s.remake.rank[a.tensor]) })
	most := s.graph.Least()
	for _, x := range s.cheap {
		s.remake.begin(&r)
		if y := s.trip[x.tensor]; y.free >= y.need || !s.remake.add(&r, x.tensor, y.need, s.gone) {
			delete(s.trip, x.tensor)
			continue
		}
		s.keepChain(x.tensor, r.ghosts, most)
	}
	s.cheap = slices.DeleteFunc(s.cheap, func(x gap) bool { return s.trip[x.tensor] == nil })
}

// keepChain keeps what a tensor is computed again from, once it is, if the chain takes no more than so many bytes.
func (s *superNeurons) keepChain(t int32, ghosts []int32, most int64) {
	chain := s.graph.Tensors[t].Bytes
	for _, ghost := range ghosts {
		chain += s.graph.Tensors[ghost].Bytes
	}
	if chain > most {
		return
	}
	need := s.trip[t].need
	for _, ghost := range ghosts {
		if x := s.trip[ghost]; x != nil && x.free <= need && need < x.need {
			x.need, x.back = need, need
		}
	}
}

// pages returns what the cache holds, with the uses by what is computed again, and adds the bytes of ghosts to each operator's.
func (s *superNeurons) pages(ghosts []int64) []page {
	uses := make([][]int32, len(s.graph.Tensors))
	for t := range uses {
		uses[t] = slices.Clone(s.graph.Tensors[t].Uses)
	}
	var trips []trip
	for _, x := range s.cheap {
		trips = append(trips, *s.trip[x.tensor])
	}
	r := &s.compiler.recipe
	s.eachAgain(trips, func(again []int32) {
		op := trips[again[0]].need
		s.remake.begin(r)
		for _, i := range again {
			s.remake.add(r, trips[i].tensor, op, s.gone)
		}
		for _, t := range r.ghosts {
			ghosts[op] += s.graph.Tensors[t].Bytes
		}
		for _, t := range r.needs {
			uses[t] = append(uses[t], op)
		}
	})
	var pages []page
	for t := range s.graph.Tensors {
		slices.Sort(uses[t])
		pages = s.split(pages, int32(t), slices.Compact(uses[t]))
	}
	return pages
}

// split adds the pages of a tensor: two if it is computed again in between.
func (s *superNeurons) split(pages []page, t int32, uses []int32) []page {
	made := s.graph.Tensors[t].Made
	x := s.trip[t]
	if x == nil {
		return append(pages, page{t, made, uses, s.graph.Ops[made].Type != swap.Conv})
	}
	again, _ := slices.BinarySearch(uses, x.need)
	before, behind := uses[:again], uses[again:]
	if len(before) == 0 {
		before = []int32{made}
	}
	return append(pages, page{t, made, before, true}, page{t, x.need, behind, true})
}

// convolutionBefore returns, for each trip, the last convolution of the backward pass before the operator that needs its tensor.
func (s *superNeurons) convolutionBefore(trips []trip) []int32 {
	before := make([]int32, s.ops())
	last := s.backward
	for op := range s.ops() {
		before[op] = last
		if op >= s.backward && s.graph.Ops[op].Type == swap.Conv {
			last = op
		}
	}
	want := make([]int32, len(trips))
	for i := range trips {
		want[i] = before[trips[i].need]
	}
	return want
}
