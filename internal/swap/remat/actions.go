package remat

import "gm/internal/swap"

// actions returns the schedule of a state.
func (s *state) actions() []swap.Action {
	var all []swap.Action
	last := s.marks.last
	for v := range s.Ops() {
		if v > 0 {
			all = s.freeAfter(all, v-1)
		}
		for i, t := range s.again[v] {
			for _, from := range s.Graph.Tensors[t].From {
				last[from] = int32(i)
			}
		}
		for _, t := range s.Readers.Of(v) {
			last[t] = int32(len(s.again[v]))
		}
		for i, t := range s.again[v] {
			all = append(all, swap.Action{Kind: swap.Recompute, Tensor: t, At: v})
			for _, from := range s.Graph.Tensors[t].From {
				if last[from] == int32(i) {
					last[from] = -1
					if !s.stays(from, v) {
						all = append(all, swap.Action{Kind: swap.Free, Tensor: from, At: v})
					}
				}
			}
		}
	}
	return all
}

// freeAfter adds what is freed before the operator behind another: what that read or wrote and is not held.
func (s *state) freeAfter(all []swap.Action, v int32) []swap.Action {
	free := func(t int32) {
		if s.Graph.Tensors[t].Last() > v && !s.stays(t, v) {
			all = append(all, swap.Action{Kind: swap.Free, Tensor: t, At: v + 1})
		}
	}
	for _, t := range s.Readers.Of(v) {
		if s.Graph.Tensors[t].Made < v {
			free(t)
		}
	}
	for _, t := range s.Writers.Of(v) {
		free(t)
	}
	return all
}
