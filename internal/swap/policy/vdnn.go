package policy

import (
	"slices"

	"gm/internal/swap"
)

// planVDNNAll copies the input of every layer to the host while the last layer that reads it in the forward pass runs.
func planVDNNAll(p *problem) ([]swap.Action, error) {
	return p.planVDNN(func(swap.OpType) bool { return true }), nil
}

// planVDNNConv does so with what a convolution reads.
func planVDNNConv(p *problem) ([]swap.Action, error) {
	return p.planVDNN(func(kind swap.OpType) bool { return kind == swap.Conv }), nil
}

// readForward says whether an operator of the forward pass, of a type that is asked for, reads a tensor.
func (p *problem) readForward(t int32, asked func(swap.OpType) bool) bool {
	return slices.ContainsFunc(p.graph.Tensors[t].Uses, func(op int32) bool { return op < p.backward && asked(p.graph.Ops[op].Type) })
}

// planVDNN is vDNN (Rhu et al., MICRO 2016, section 3.2; Dymem, section 2.3.1): the layer behind the one that a copy to the host overlaps
// with waits for its end, and so does the one behind that which a copy back overlaps with.
func (p *problem) planVDNN(asked func(swap.OpType) bool) []swap.Action {
	v := vdnn{p, map[int32]gap{}}
	c := &p.compiler
	c.reset()
	for _, x := range p.mainGaps() {
		t := &p.graph.Tensors[x.tensor]
		if !p.readForward(x.tensor, asked) {
			continue
		}
		out := max(x.after, t.Made+1)
		v.away[x.tensor] = gap{x.tensor, out + 1, x.before}
		c.add(rankOffload, swap.Action{Kind: swap.Offload, Tensor: x.tensor, At: out, Bytes: t.Bytes})
		c.add(rankFree, swap.Action{Kind: swap.Free, Tensor: x.tensor, At: out + 1})
	}
	for op := p.backward; op < p.ops(); op++ {
		v.prefetch(op, op) // what the search has not found
		for ahead := op + 1; ahead < p.ops() && !v.prefetch(op, ahead) && p.graph.Ops[ahead].Type != swap.Conv; ahead++ {
		}
	}
	return c.sort(p.ops())
}

type vdnn struct {
	*problem
	away map[int32]gap // by tensor, from when it is given back, until its copy back begins
}

// prefetch copies back, while one layer of the backward pass runs, what another needs. It returns whether that is anything.
func (v *vdnn) prefetch(at, of int32) bool {
	found := false
	for _, t := range v.readers.Of(of) {
		x, ok := v.away[t]
		if !ok || x.before != of || x.after > at {
			continue
		}
		found = true
		delete(v.away, t)
		v.compiler.add(rankPrefetch, swap.Action{Kind: swap.Prefetch, Tensor: t, At: at, Bytes: v.graph.Tensors[t].Bytes})
		if of > at {
			v.compiler.add(rankAwait, swap.Action{Kind: swap.Await, Tensor: t, At: at + 1})
		}
	}
	return found
}
