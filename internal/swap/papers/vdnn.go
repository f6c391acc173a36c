package papers

import (
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// VDNNAll copies the input of every layer to the host while the last layer that reads it in the forward pass runs.
func VDNNAll(p *draft.Problem) ([]swap.Action, error) {
	return planVDNN(p, func(swap.OpType) bool { return true }), nil
}

// VDNNConv does so with the inputs of convolutions.
func VDNNConv(p *draft.Problem) ([]swap.Action, error) {
	return planVDNN(p, func(kind swap.OpType) bool { return kind == swap.Conv }), nil
}

// readForward reports whether an operator of the forward pass whose type asked accepts reads a tensor.
func readForward(p *draft.Problem, t int32, asked func(swap.OpType) bool) bool {
	return slices.ContainsFunc(p.Graph.Tensors[t].Uses, func(op int32) bool { return op < p.Backward && asked(p.Graph.Ops[op].Type) })
}

// planVDNN is vDNN (Rhu et al., MICRO 2016, section 3.2; Dymem, section 2.3.1): a copy, either way, overlaps with one layer, and the next layer
// waits for its end.
func planVDNN(p *draft.Problem, asked func(swap.OpType) bool) []swap.Action {
	v := vdnn{Problem: p, away: map[int32]draft.Gap{}}
	c := &p.Compiler
	c.Reset()
	for _, x := range p.MainGaps() {
		t := &p.Graph.Tensors[x.Tensor]
		if !readForward(p, x.Tensor, asked) {
			continue
		}
		out := max(x.After, t.Made+1)
		v.away[x.Tensor] = draft.Gap{Tensor: x.Tensor, After: out + 1, Before: x.Before}
		c.Add(draft.AtOffload, swap.Action{Kind: swap.Offload, Tensor: x.Tensor, At: out, Bytes: t.Bytes})
		c.Add(draft.AtFree, swap.Action{Kind: swap.Free, Tensor: x.Tensor, At: out + 1})
	}
	for op := p.Backward; op < p.Ops(); op++ {
		v.prefetch(op, op) // what the search has not found
		for ahead := op + 1; ahead < p.Ops() && !v.prefetch(op, ahead) && p.Graph.Ops[ahead].Type != swap.Conv; ahead++ {
		}
	}
	return c.Sort(p.Ops())
}

type vdnn struct {
	*draft.Problem
	away map[int32]draft.Gap // by tensor, from when it is freed, until its copy back begins
}

// prefetch copies back, while one layer of the backward pass runs, what another needs. It returns false if there is nothing to copy.
func (v *vdnn) prefetch(at, of int32) bool {
	found := false
	for _, t := range v.Readers.Of(of) {
		x, ok := v.away[t]
		if !ok || x.Before != of || x.After > at {
			continue
		}
		found = true
		delete(v.away, t)
		v.Compiler.Add(draft.AtPrefetch, swap.Action{Kind: swap.Prefetch, Tensor: t, At: at, Bytes: v.Graph.Tensors[t].Bytes})
		if of > at {
			v.Compiler.Add(draft.AtAwait, swap.Action{Kind: swap.Await, Tensor: t, At: at + 1})
		}
	}
	return found
}
