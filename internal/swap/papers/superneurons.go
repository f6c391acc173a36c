package papers

import (
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// SuperNeurons is the policy of Wang et al. (PPoPP 2018, sections 3.2 to 3.4; Dymem, section 4.1). Outputs of convolutions are cached on the device
// and sent to the host when memory is short, least recently used first; they come back while the convolution before the one that needs them
// runs. Outputs of cheap layers are freed after the forward pass and recomputed. Of a chain of cheap layers all recomputed outputs are kept if
// they take no more memory than the largest operator; otherwise the chain is recomputed for each. Where memory suffices nothing is done.
func SuperNeurons(p *draft.Problem) ([]swap.Action, error) {
	if _, short := draft.Over(p.Plain, p.Limits.Device); short <= 0 {
		return nil, nil
	}
	s := superNeurons{Problem: p, trip: map[int32]*draft.Trip{}}
	s.dropCheap()
	q := &draft.Pager{Problem: p, Transient: make([]int64, p.Ops()), Late: true}
	q.Rank.Of = func(q *draft.Pager, i, _ int32) float64 { return -float64(q.State[i].Touched) }
	q.Pages = s.pages(q.Transient)
	if err := q.Run(); err != nil {
		return nil, err
	}
	trips := q.Trips
	order := slices.Clone(p.ByNeed(trips))
	p.Lift(trips, order, s.convolutionBefore(trips), q.Usage)
	for _, x := range s.cheap {
		trips = append(trips, *s.trip[x.Tensor])
	}
	return p.Compile(trips, s.gone), nil
}

type superNeurons struct {
	*draft.Problem
	cheap []draft.Gap
	trip  map[int32]*draft.Trip // of those
}

// gone reports whether a tensor is not on the device at an operator and has to be recomputed.
func (s *superNeurons) gone(t, op int32) bool {
	x := s.trip[t]
	return s.Remake.Dead(t, op) || x != nil && x.Free <= op && op < x.Need
}

// isCheap reports whether SuperNeurons reruns the operator that makes a tensor.
func (s *superNeurons) isCheap(t int32) bool {
	kind := s.Graph.Ops[s.Graph.Tensors[t].Made].Type
	return draft.Features(kind) && kind != swap.Conv
}

// dropCheap finds what is recomputed, and when: tensors that cheap layers alone compute from kept ones.
func (s *superNeurons) dropCheap() {
	var r draft.Recipe
	for _, x := range s.MainGaps() {
		_, able := s.Remake.Price(&r, x.Tensor, x.Before)
		if able && s.isCheap(x.Tensor) && !slices.ContainsFunc(r.Ghosts, func(t int32) bool { return !s.isCheap(t) }) {
			s.cheap = append(s.cheap, x)
			s.trip[x.Tensor] = &draft.Trip{Tensor: x.Tensor, After: x.After, Free: x.After + 1, Back: x.Before, Need: x.Before}
		}
	}
	slices.SortFunc(s.cheap, func(a, b draft.Gap) int { return int(s.Remake.Rank[b.Tensor] - s.Remake.Rank[a.Tensor]) })
	most := s.Graph.Least()
	for _, x := range s.cheap {
		s.Remake.Begin(&r)
		if y := s.trip[x.Tensor]; y.Free >= y.Need || !s.Remake.Add(&r, x.Tensor, y.Need, s.gone) {
			delete(s.trip, x.Tensor)
			continue
		}
		s.keepChain(x.Tensor, r.Ghosts, most)
	}
	s.cheap = slices.DeleteFunc(s.cheap, func(x draft.Gap) bool { return s.trip[x.Tensor] == nil })
}

// keepChain keeps the ghosts that a tensor is recomputed from, once they are recomputed, if the chain has at most most bytes.
func (s *superNeurons) keepChain(t int32, ghosts []int32, most int64) {
	chain := s.Graph.Tensors[t].Bytes
	for _, ghost := range ghosts {
		chain += s.Graph.Tensors[ghost].Bytes
	}
	if chain > most {
		return
	}
	need := s.trip[t].Need
	for _, ghost := range ghosts {
		if x := s.trip[ghost]; x != nil && x.Free <= need && need < x.Need {
			x.Need, x.Back = need, need
		}
	}
}

// pages returns the pages of the cache, with their uses by recomputations, and adds the bytes of ghosts to each operator's.
func (s *superNeurons) pages(ghosts []int64) []draft.Page {
	uses := make([][]int32, len(s.Graph.Tensors))
	for t := range uses {
		uses[t] = slices.Clone(s.Graph.Tensors[t].Uses)
	}
	var trips []draft.Trip
	for _, x := range s.cheap {
		trips = append(trips, *s.trip[x.Tensor])
	}
	r := &s.Compiler.Recipe
	s.EachAgain(trips, func(again []int32) {
		op := trips[again[0]].Need
		s.Remake.Begin(r)
		for _, i := range again {
			s.Remake.Add(r, trips[i].Tensor, op, s.gone)
		}
		for _, t := range r.Ghosts {
			ghosts[op] += s.Graph.Tensors[t].Bytes
		}
		for _, t := range r.Needs {
			uses[t] = append(uses[t], op)
		}
	})
	var pages []draft.Page
	for t := range s.Graph.Tensors {
		slices.Sort(uses[t])
		pages = s.split(pages, int32(t), slices.Compact(uses[t]))
	}
	return pages
}

// split adds the pages of a tensor: two if it is recomputed in between.
func (s *superNeurons) split(pages []draft.Page, t int32, uses []int32) []draft.Page {
	made := s.Graph.Tensors[t].Made
	x := s.trip[t]
	if x == nil {
		return append(pages, draft.Page{Tensor: t, Made: made, Uses: uses, Fixed: s.Graph.Ops[made].Type != swap.Conv})
	}
	again, _ := slices.BinarySearch(uses, x.Need)
	before, behind := uses[:again], uses[again:]
	if len(before) == 0 {
		before = []int32{made}
	}
	return append(pages, draft.Page{Tensor: t, Made: made, Uses: before, Fixed: true}, draft.Page{Tensor: t, Made: x.Need, Uses: behind, Fixed: true})
}

// convolutionBefore returns, for each trip, the last convolution of the backward pass before the operator that needs its tensor.
func (s *superNeurons) convolutionBefore(trips []draft.Trip) []int32 {
	before := make([]int32, s.Ops())
	last := s.Backward
	for op := range s.Ops() {
		before[op] = last
		if op >= s.Backward && s.Graph.Ops[op].Type == swap.Conv {
			last = op
		}
	}
	want := make([]int32, len(trips))
	for i := range trips {
		want[i] = before[trips[i].Need]
	}
	return want
}
