package solve

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"gm/internal/order"
	"gm/internal/order/mincut"
)

// branch raises the bound by branch and bound. The bound of one operator lets all others run when it suits that one: an update is far away, or
// done. Of an update and an operator of the backward pass one comes first, though, and the other one meets what that leaves in memory. A node of
// the search has some pairs of operators in a given order. Its bound is the greatest cut of these operators with the pairs kept, and the
// bound of the problem the least of the nodes that are open.
func (s *search) branch(ctx context.Context) {
	pairs := s.candidates()
	cutter := mincut.NewCutter(s.Links)
	nodes := &openNodes{{bound: s.best.Bound}}
	for range s.Nodes {
		if ctx.Err() != nil || s.best.Optimal() {
			return
		}
		n := heap.Pop(nodes).(*node)
		children := n.divide(ctx, cutter, &pairs)
		if children == nil {
			return // no pair of operators raises the lowest bound
		}
		for _, child := range children {
			heap.Push(nodes, child)
		}
		s.best.Bound = max(s.best.Bound, min(s.best.Peak, (*nodes)[0].bound))
	}
}

// candidates are operators of which pairs are tried: those of the greatest cuts, and those that touch the most bytes.
type candidates struct{ tight, heavy []int32 }

const (
	tightOps = 16
	heavyOps = 64
)

func (s *search) candidates() candidates {
	ops := order.Program(s.Problem.Ops())
	loads := s.Loads(s.best.Order)
	place := make([]int32, len(ops))
	for i, op := range s.best.Order {
		place[op] = int32(i)
	}
	top := func(n int, of func(op int32) int64) []int32 {
		value := make([]int64, len(ops))
		for op := range value {
			value[op] = of(int32(op))
		}
		slices.SortStableFunc(ops, func(a, b int32) int { return cmp.Compare(value[b], value[a]) })
		return slices.Clone(ops[:min(len(ops), n)])
	}
	high := top(16*tightOps, func(op int32) int64 { return loads[place[op]] })
	slices.SortStableFunc(high, func(a, b int32) int { return cmp.Compare(s.cutter.Bound(b), s.cutter.Bound(a)) })
	return candidates{high[:min(len(high), tightOps)], top(heavyOps, s.touchedBytes)}
}

// touchedBytes returns the bytes of the tensors that an operator touches, and its own.
func (s *search) touchedBytes(op int32) int64 {
	bytes := s.Problem.Temp[op]
	for _, t := range s.Touched.Of(op) {
		bytes += s.Problem.Tensors[t].Bytes
	}
	return bytes
}

// node is a part of the orders: those with some pairs of operators in a given order.
type node struct {
	turns [][2]int32
	bound int64
}

// openNodes is a heap, the lowest bound first.
type openNodes []*node

// Len implements heap.Interface.
func (h openNodes) Len() int { return len(h) }

// Less implements heap.Interface.
func (h openNodes) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].bound, h[j].bound), cmp.Compare(len(h[j].turns), len(h[i].turns))) < 0
}

// Swap implements heap.Interface.
func (h openNodes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *openNodes) Push(x any) { *h = append(*h, x.(*node)) }

// Pop implements heap.Interface.
func (h *openNodes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// divide returns the two parts of a node for the pair of operators that raises the lower one's bound most, nil if no pair raises it.
func (n *node) divide(ctx context.Context, cutter *mincut.Cutter, c *candidates) []*node {
	best := [2]*node{n, n}
	for _, v := range c.tight {
		cutter.Turns = n.turns
		apart := cutter.Apart(v, c.heavy)
		for _, w := range apart {
			if ctx.Err() != nil {
				return nil
			}
			first := n.child(cutter, w, v)
			if first.bound <= best[0].bound {
				continue
			}
			if second := n.child(cutter, v, w); second.bound > best[0].bound {
				best = [2]*node{first, second}
				if second.bound < first.bound {
					best = [2]*node{second, first}
				}
			}
		}
	}
	if best[0] == n {
		return nil
	}
	return best[:]
}

// child returns the part of a node in which one operator comes before another.
func (n *node) child(cutter *mincut.Cutter, first, second int32) *node {
	child := &node{turns: append(slices.Clone(n.turns), [2]int32{first, second})}
	cutter.Turns = child.turns
	child.bound = max(n.bound, cutter.Cut(first), cutter.Cut(second))
	return child
}
