// Package ordering puts the operators of a step into another order.
//
//	problem.go   the step as a problem of package order
//	step.go      an order of that problem as a step
package ordering

import (
	"slices"

	"gm/internal/order"
	"gm/internal/swap"
)

// Problem returns the order problem of a valid step. What an operator has in Base beyond the least Base of all is taken to be its own.
func Problem(g *swap.Graph) *order.Problem {
	p := &order.Problem{Temp: make([]int64, len(g.Ops)), Tensors: make([]order.Tensor, len(g.Tensors)), Phases: make([]int8, len(g.Ops))}
	base := Lasting(g)
	for i := range g.Ops {
		p.Temp[i], p.Phases[i] = g.Ops[i].Base-base, int8(g.Ops[i].Phase)
	}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		p.Tensors[i] = order.Tensor{Bytes: t.Bytes, Ops: touching(t), Over: t.Over}
		p.Before = appendTurns(p.Before, t)
		for _, from := range t.From {
			if made := g.Tensors[from].Made; made < t.Made {
				p.Before = append(p.Before, [2]int32{made, t.Made}) // it is recomputed from what is older
			}
		}
	}
	p.Before = appendStates(p.Before, g)
	return p
}

// Loads returns, for each operator, the bytes in use in a step that moves nothing, with tensors written over others where they may be.
func Loads(g *swap.Graph) []int64 {
	p := Problem(g)
	loads, base := order.Link(p).Loads(order.Program(p.Ops())), Lasting(g)
	for i := range loads {
		loads[i] += base
	}
	return loads
}

// touching returns the operators that make or use a tensor.
func touching(t *swap.Tensor) []int32 {
	if t.Uses[0] == t.Made {
		return t.Uses
	}
	return slices.Insert(slices.Clone(t.Uses), 0, t.Made)
}

// appendTurns appends the pairs of operators that changes of a tensor's contents keep in order.
func appendTurns(pairs [][2]int32, t *swap.Tensor) [][2]int32 {
	if len(t.Changed) == 0 {
		return pairs
	}
	turns := turns{pairs: pairs, changed: t.Made}
	for _, op := range t.Uses {
		if op == t.Made {
			continue
		}
		if _, changes := slices.BinarySearch(t.Changed, op); changes {
			turns.change(op)
		} else {
			turns.read(op)
		}
	}
	return turns.pairs
}

// appendStates appends the pairs of operators that states keep in order.
func appendStates(pairs [][2]int32, g *swap.Graph) [][2]int32 {
	states := make([]turns, len(g.States))
	for i := range states {
		states[i] = turns{changed: -1}
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		for _, s := range op.Reads {
			if _, changes := slices.BinarySearch(op.Changes, s); !changes {
				states[s].read(int32(i))
			}
		}
		for _, s := range op.Changes {
			states[s].change(int32(i))
		}
	}
	for i := range states {
		pairs = append(pairs, states[i].pairs...)
	}
	return pairs
}

// turns are the operators that read and change one thing.
type turns struct {
	pairs   [][2]int32
	changed int32   // the last operator that changed it, -1 for none
	readers []int32 // those that have read it since
}

func (t *turns) read(op int32) {
	if t.changed >= 0 {
		t.pairs = append(t.pairs, [2]int32{t.changed, op})
	}
	t.readers = append(t.readers, op)
}

func (t *turns) change(op int32) {
	for _, reader := range t.readers {
		t.pairs = append(t.pairs, [2]int32{reader, op})
	}
	if t.changed >= 0 {
		t.pairs = append(t.pairs, [2]int32{t.changed, op})
	}
	t.changed, t.readers = op, t.readers[:0]
}
