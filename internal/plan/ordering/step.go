package ordering

import (
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/store"
)

// Step returns a step with its operators in another order of its [Problem]. Tensors keep their numbers. The phase of an operator is that of
// its place: an update before the last operator of the backward pass belongs to that pass.
func Step(g *swap.Graph, order []int32) *swap.Graph {
	places := make([]int32, len(order))
	made := *g
	made.Ops, made.Origin = make([]swap.Op, len(order)), slices.Clone(order)
	for place, op := range order {
		places[op] = int32(place)
		made.Ops[place] = g.Ops[op]
	}
	phase := swap.Update
	for place := len(order) - 1; place >= 0; place-- {
		phase = min(phase, made.Ops[place].Phase)
		made.Ops[place].Phase = phase
	}
	made.Tensors = slices.Clone(g.Tensors)
	for i := range made.Tensors {
		t := &made.Tensors[i]
		t.Made, t.Uses, t.Changed = places[t.Made], moved(t.Uses, places), moved(t.Changed, places)
	}
	return &made
}

// Program returns a step that [Step] made as it was before, but for the phases, which are those of the places in the order. It returns false
// for a step with origins that no order has.
func Program(g *swap.Graph) (*swap.Graph, bool) {
	back := make([]int32, len(g.Origin))
	for i := range back {
		back[i] = -1
	}
	for place, op := range g.Origin {
		if op < 0 || int(op) >= len(back) || back[op] >= 0 {
			return nil, false
		}
		back[op] = int32(place)
	}
	made := Step(g, back)
	return made, made.Validate() == nil
}

// moved returns the places of operators, ascending.
func moved(ops, places []int32) []int32 {
	if ops == nil {
		return nil
	}
	to := make([]int32, len(ops))
	for i, op := range ops {
		to[i] = places[op]
	}
	slices.Sort(to)
	return to
}

// File returns a reordered step as a file, with who found the order and the lower bound, in bytes, of every order.
func File(g *store.Graph, order []int32, method string, bound int64) *store.Graph {
	made := &store.Graph{Graph: Step(g.Graph, order), Recorded: g.Recorded, Meta: g.Meta}
	made.Meta.Order, made.Meta.LowerBound = method, bound
	return made
}

// Lasting returns the bytes that are in use beside the tensors at every operator: what the loads of the step's problem leave out.
func Lasting(g *swap.Graph) int64 {
	if len(g.Ops) == 0 {
		return 0
	}
	base := g.Ops[0].Base
	for i := range g.Ops {
		base = min(base, g.Ops[i].Base)
	}
	return base
}
