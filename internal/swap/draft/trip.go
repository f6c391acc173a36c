package draft

import (
	"cmp"
	"slices"

	"gm/internal/swap"
)

// Trip is one absence of a tensor from the device.
type Trip struct {
	Tensor int32
	Bytes  int64 // the first of it, which are copied to the host and back. The rest is recomputed
	After  int32 // the last operator that needs the tensor before
	Out    int32 // the operator before which the copy to the host begins; of a tensor's trips that copy, the first one's counts
	Free   int32 // the operator before which its memory is freed
	Back   int32 // that before which it is taken again and the copy back begins, or need if nothing is copied
	Need   int32 // that before which the rest is recomputed: the first one that needs the tensor, or one before it
}

// Rest returns how many bytes are recomputed.
func (p *Problem) Rest(x *Trip) int64 { return p.Graph.Tensors[x.Tensor].Bytes - x.Bytes }

// Advance lets trips end before other tensors are recomputed from theirs, and drops those that end before they begin.
func (p *Problem) Advance(trips []Trip) []Trip {
	w := &p.spare
	tensors := int32(len(p.Graph.Tensors))
	w.byTensor.Fill(tensors, len(trips), func(i int) int32 { return trips[i].Tensor })
	w.byRank.Fill(tensors, len(trips), func(i int) int32 { return tensors - 1 - p.Remake.Rank[trips[i].Tensor] })
	r := &p.Compiler.Recipe
	for _, i := range w.byRank.items {
		x := &trips[i]
		if x.Free >= x.Need || p.Rest(x) == 0 {
			continue
		}
		p.Remake.Begin(r)
		p.Remake.Add(r, x.Tensor, x.Need, p.Remake.Dead)
		for _, t := range r.Needs {
			for _, j := range w.byTensor.Of(t) {
				if y := &trips[j]; y.Free <= x.Need && x.Need < y.Need {
					y.Need, y.Back = x.Need, min(y.Back, x.Need)
				}
			}
		}
	}
	return TakeAway(trips, func(x *Trip) bool { return x.Free >= x.Need })
}

// TakeAway removes trips.
func TakeAway(trips []Trip, pointless func(*Trip) bool) []Trip {
	kept := trips[:0]
	for i := range trips {
		if !pointless(&trips[i]) {
			kept = append(kept, trips[i])
		}
	}
	return kept
}

// The order of actions before one operator. Copies to the host begin before anything waits; memory is freed before more is taken.
const (
	AtOffload = iota
	AtFree
	AtPrefetch
	AtAwait
	rankRecompute // ends with the ghosts being freed
	ranks
)

// Compiler turns trips into actions. Its memory is reused.
type Compiler struct {
	unsorted []swap.Action
	keys     []int32
	actions  []swap.Action
	order    Buckets
	copied   []bool
	again    []int32 // trips that compute something again
	Recipe   Recipe
}

func (c *Compiler) Reset() { c.unsorted, c.keys, c.again = c.unsorted[:0], c.keys[:0], c.again[:0] }

func (c *Compiler) Add(rank int32, a swap.Action) {
	c.unsorted = append(c.unsorted, a)
	c.keys = append(c.keys, a.At*ranks+rank)
}

// Compile returns the actions of trips, which are in the order in which copies to the host are to be made if they begin at the same
// operator. A tensor that is not gone is taken to be on the device. The actions are valid until the next call.
func (p *Problem) Compile(trips []Trip, gone func(t, op int32) bool) []swap.Action {
	c := &p.Compiler
	c.Reset()
	p.compileCopies(trips)
	p.EachAgain(trips, func(again []int32) { p.compileAgain(trips, again, gone) })
	return c.Sort(p.Ops())
}

// EachAgain calls do for each operator before which something is recomputed, with the trips that this ends, in an order in which they
// can be.
func (p *Problem) EachAgain(trips []Trip, do func(again []int32)) {
	again := p.Compiler.again[:0]
	for i := range trips {
		if p.Rest(&trips[i]) > 0 {
			again = append(again, int32(i))
		}
	}
	slices.SortFunc(again, func(a, b int32) int {
		x, y := &trips[a], &trips[b]
		return cmp.Or(int(x.Need-y.Need), int(p.Remake.Rank[x.Tensor]-p.Remake.Rank[y.Tensor]))
	})
	for first, end := 0, 0; first < len(again); first = end {
		need := trips[again[first]].Need
		for end = first + 1; end < len(again) && trips[again[end]].Need == need; end++ {
		}
		do(again[first:end])
	}
	p.Compiler.again = again
}

// compileCopies adds all actions but recomputations.
func (p *Problem) compileCopies(trips []Trip) {
	c := &p.Compiler
	c.copied = Zeroed(c.copied, len(p.Graph.Tensors))
	for i := range trips {
		x := &trips[i]
		if x.Bytes > 0 && !c.copied[x.Tensor] {
			c.copied[x.Tensor] = true
			c.Add(AtOffload, swap.Action{Kind: swap.Offload, Tensor: x.Tensor, At: x.Out, Bytes: x.Bytes})
		}
		c.Add(AtFree, swap.Action{Kind: swap.Free, Tensor: x.Tensor, At: x.Free})
	}
	for _, i := range p.ByNeed(trips) {
		if x := &trips[i]; x.Bytes > 0 {
			c.Add(AtPrefetch, swap.Action{Kind: swap.Prefetch, Tensor: x.Tensor, At: x.Back, Bytes: x.Bytes})
		}
	}
}

// compileAgain adds what is recomputed before one operator: each tensor behind those that it is computed from.
func (p *Problem) compileAgain(trips []Trip, again []int32, gone func(t, op int32) bool) {
	c := &p.Compiler
	op := trips[again[0]].Need
	p.Remake.Begin(&c.Recipe)
	ghosts := 0
	for _, i := range again {
		t := trips[i].Tensor
		p.Remake.Add(&c.Recipe, t, op, gone)
		for ; ghosts < len(c.Recipe.Ghosts); ghosts++ {
			c.Add(rankRecompute, swap.Action{Kind: swap.Recompute, Tensor: c.Recipe.Ghosts[ghosts], At: op})
		}
		c.Add(rankRecompute, swap.Action{Kind: swap.Recompute, Tensor: t, At: op})
	}
	for _, t := range c.Recipe.Ghosts {
		c.Add(rankRecompute, swap.Action{Kind: swap.Free, Tensor: t, At: op})
	}
}

// ByNeed lists trips in the order in which their tensors are needed. The list is valid until the next call.
func (p *Problem) ByNeed(trips []Trip) []int32 {
	p.spare.byNeed.Fill(p.Ops(), len(trips), func(i int) int32 { return trips[i].Need })
	return p.spare.byNeed.items
}

// Sort returns the actions by operator and rank, and otherwise in the order in which they were added.
func (c *Compiler) Sort(ops int32) []swap.Action {
	c.order.Fill(ops*ranks, len(c.keys), func(i int) int32 { return c.keys[i] })
	c.actions = c.actions[:0]
	for _, i := range c.order.items {
		c.actions = append(c.actions, c.unsorted[i])
	}
	return c.actions
}
