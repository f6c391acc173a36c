package main

import (
	"slices"

	"gm/internal/swap"
)

// layerwise is a graph by its layers, for schedules that treat each of them in the same way.
type layerwise struct {
	graph    *swap.Graph
	tensors  [][]int32 // of each layer, as they are made
	forward  []int32   // the first operator of each layer's forward pass, and the first one behind the last layer
	backward []int32   // the first operator of each layer's backward pass
	actions  []swap.Action
}

func newLayerwise(g *swap.Graph) *layerwise {
	l := &layerwise{graph: g}
	for i := range g.Tensors {
		layer := g.Tensors[i].Layer
		if layer < 0 {
			continue
		}
		for int(layer) >= len(l.tensors) {
			l.tensors = append(l.tensors, nil)
		}
		l.tensors[layer] = append(l.tensors[layer], int32(i))
	}
	l.forward, l.backward = make([]int32, len(l.tensors)+1), make([]int32, len(l.tensors))
	for i := len(g.Ops) - 1; i >= 0; i-- {
		switch o := &g.Ops[i]; {
		case o.Layer < 0:
		case o.Phase == swap.Forward:
			l.forward[o.Layer] = int32(i)
			l.forward[len(l.tensors)] = max(l.forward[len(l.tensors)], int32(i)+1)
		default:
			l.backward[o.Layer] = int32(i)
		}
	}
	return l
}

func (l *layerwise) act(kind swap.Kind, tensor, at int32, bytes int64) {
	l.actions = append(l.actions, swap.Action{Kind: kind, Tensor: tensor, At: at, Bytes: bytes})
}

// done returns the actions in the order of the operators.
func (l *layerwise) done() []swap.Action {
	slices.SortStableFunc(l.actions, func(a, b swap.Action) int { return int(a.At - b.At) })
	return l.actions
}

// memoSchedule is MEMO's (section 4.1) for a given alpha: behind the forward pass of a layer its input, the output of attention and a part of
// the rows of all others leave, until the layer after the next begins, which takes their place in one of two buffers. Once the backward
// pass of that one is over they come back, and what did not leave is computed again right before its layer's backward pass. The last two
// layers keep all.
func memoSchedule(g *swap.Graph, alpha float64) []swap.Action {
	l := newLayerwise(g)
	last := len(l.tensors) - 3
	for layer := 0; layer <= last; layer++ {
		for _, t := range l.tensors[layer] {
			if bytes := copied(&g.Tensors[t], alpha); bytes > 0 {
				l.act(swap.Offload, t, l.forward[layer+1], bytes)
			}
			l.act(swap.Free, t, l.forward[layer+2], 0)
		}
	}
	for layer := last; layer >= 0; layer-- {
		for _, t := range l.tensors[layer] {
			if bytes := copied(&g.Tensors[t], alpha); bytes > 0 {
				l.act(swap.Prefetch, t, l.backward[layer+1], bytes)
			}
		}
		for _, t := range l.tensors[layer] {
			if copied(&g.Tensors[t], alpha) < g.Tensors[t].Bytes {
				l.act(swap.Recompute, t, l.backward[layer], 0)
			}
		}
	}
	return l.done()
}

// copied returns the bytes of a tensor that leave.
func copied(t *swap.Tensor, alpha float64) int64 {
	if t.Role == swap.Inner {
		return int64(alpha * float64(t.Bytes))
	}
	return t.Bytes
}

// recomputation is the schedule that keeps the input of each layer and computes all else again.
func recomputation(g *swap.Graph) []swap.Action {
	l := newLayerwise(g)
	for layer, tensors := range l.tensors {
		for _, t := range tensors {
			if g.Tensors[t].Role != swap.LayerInput {
				l.act(swap.Free, t, l.forward[layer+1], 0)
				l.act(swap.Recompute, t, l.backward[layer], 0)
			}
		}
	}
	return l.done()
}
