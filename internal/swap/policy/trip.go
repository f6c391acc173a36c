package policy

import (
	"cmp"
	"slices"

	"gm/internal/swap"
)

// trip is one absence of a tensor from the device.
type trip struct {
	tensor int32
	bytes  int64 // the first of it, which are copied to the host and back. The rest is computed again
	after  int32 // the last operator that needs the tensor before
	out    int32 // the operator before which the copy to the host begins; of a tensor's trips that copy, the first one's counts
	free   int32 // the operator before which its memory is given back
	back   int32 // that before which it is taken again and the copy back begins, or need if nothing is copied
	need   int32 // that before which the rest is computed again: the first one that needs the tensor, or one before it
}

// rest returns how many bytes are computed again.
func (p *problem) rest(x *trip) int64 { return p.graph.Tensors[x.tensor].Bytes - x.bytes }

// advance lets trips end before other tensors are computed again from theirs, and drops those that end before they begin.
func (p *problem) advance(trips []trip) []trip {
	w := &p.work
	tensors := int32(len(p.graph.Tensors))
	w.byTensor.fill(tensors, len(trips), func(i int) int32 { return trips[i].tensor })
	w.byRank.fill(tensors, len(trips), func(i int) int32 { return tensors - 1 - p.remake.rank[trips[i].tensor] })
	r := &p.compiler.recipe
	for _, i := range w.byRank.items {
		x := &trips[i]
		if x.free >= x.need || p.rest(x) == 0 {
			continue
		}
		p.remake.begin(r)
		p.remake.add(r, x.tensor, x.need, p.remake.dead)
		for _, t := range r.needs {
			for _, j := range w.byTensor.of(t) {
				if y := &trips[j]; y.free <= x.need && x.need < y.need {
					y.need, y.back = x.need, min(y.back, x.need)
				}
			}
		}
	}
	return takeAway(trips, func(x *trip) bool { return x.free >= x.need })
}

// The order of actions before one operator. Copies to the host begin before anything waits; memory is given back before more is taken.
const (
	rankOffload = iota
	rankFree
	rankPrefetch
	rankAwait
	rankRecompute // ends with the ghosts being given back
	ranks
)

// compiler turns trips into actions. Its memory is used again.
type compiler struct {
	unsorted []swap.Action
	keys     []int32
	actions  []swap.Action
	order    buckets
	copied   []bool
	again    []int32 // trips that compute something again
	recipe   recipe
}

func (c *compiler) reset() { c.unsorted, c.keys, c.again = c.unsorted[:0], c.keys[:0], c.again[:0] }

func (c *compiler) add(rank int32, a swap.Action) {
	c.unsorted = append(c.unsorted, a)
	c.keys = append(c.keys, a.At*ranks+rank)
}

// compile returns the actions of trips, which are in the order in which copies to the host are to be made if they begin at the same
// operator. A tensor that is not gone as [problem.gone] has it is taken to be on the device. The actions are valid until the next call.
func (p *problem) compile(trips []trip, gone func(t, op int32) bool) []swap.Action {
	c := &p.compiler
	c.reset()
	p.compileCopies(trips)
	p.eachAgain(trips, func(again []int32) { p.compileAgain(trips, again, gone) })
	return c.sort(p.ops())
}

// eachAgain calls do for each operator before which something is computed again, with the trips that this ends, in an order in which they
// can be.
func (p *problem) eachAgain(trips []trip, do func(again []int32)) {
	again := p.compiler.again[:0]
	for i := range trips {
		if p.rest(&trips[i]) > 0 {
			again = append(again, int32(i))
		}
	}
	slices.SortFunc(again, func(a, b int32) int {
		x, y := &trips[a], &trips[b]
		return cmp.Or(int(x.need-y.need), int(p.remake.rank[x.tensor]-p.remake.rank[y.tensor]))
	})
	for first, end := 0, 0; first < len(again); first = end {
		need := trips[again[first]].need
		for end = first + 1; end < len(again) && trips[again[end]].need == need; end++ {
		}
		do(again[first:end])
	}
	p.compiler.again = again
}

// compileCopies adds all but what is computed again.
func (p *problem) compileCopies(trips []trip) {
	c := &p.compiler
	c.copied = zeroed(c.copied, len(p.graph.Tensors))
	for i := range trips {
		x := &trips[i]
		if x.bytes > 0 && !c.copied[x.tensor] {
			c.copied[x.tensor] = true
			c.add(rankOffload, swap.Action{Kind: swap.Offload, Tensor: x.tensor, At: x.out, Bytes: x.bytes})
		}
		c.add(rankFree, swap.Action{Kind: swap.Free, Tensor: x.tensor, At: x.free})
	}
	for _, i := range p.byNeed(trips) {
		if x := &trips[i]; x.bytes > 0 {
			c.add(rankPrefetch, swap.Action{Kind: swap.Prefetch, Tensor: x.tensor, At: x.back, Bytes: x.bytes})
		}
	}
}

// compileAgain adds what is computed again before one operator: each tensor behind those that it is computed from.
func (p *problem) compileAgain(trips []trip, again []int32, gone func(t, op int32) bool) {
	c := &p.compiler
	op := trips[again[0]].need
	p.remake.begin(&c.recipe)
	ghosts := 0
	for _, i := range again {
		t := trips[i].tensor
		p.remake.add(&c.recipe, t, op, gone)
		for ; ghosts < len(c.recipe.ghosts); ghosts++ {
			c.add(rankRecompute, swap.Action{Kind: swap.Recompute, Tensor: c.recipe.ghosts[ghosts], At: op})
		}
		c.add(rankRecompute, swap.Action{Kind: swap.Recompute, Tensor: t, At: op})
	}
	for _, t := range c.recipe.ghosts {
		c.add(rankRecompute, swap.Action{Kind: swap.Free, Tensor: t, At: op})
	}
}

// byNeed lists trips in the order in which their tensors are needed. The list is valid until the next call.
func (p *problem) byNeed(trips []trip) []int32 {
	p.work.byNeed.fill(p.ops(), len(trips), func(i int) int32 { return trips[i].need })
	return p.work.byNeed.items
}

// sort returns the actions by operator and rank, and otherwise in the order in which they were added.
func (c *compiler) sort(ops int32) []swap.Action {
	c.order.fill(ops*ranks, len(c.keys), func(i int) int32 { return c.keys[i] })
	c.actions = c.actions[:0]
	for _, i := range c.order.items {
		c.actions = append(c.actions, c.unsorted[i])
	}
	return c.actions
}
