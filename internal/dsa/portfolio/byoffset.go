package portfolio

import (
	"gm/internal/dsa/canonical"
	"gm/internal/dsa/exact"
)

// byOffset is the search of google/minimalloc beside the searchers of restarts, for a given capacity and from the first long round on. Some instances are easy for it alone.
// It comes before the searchers in each round, so that what it finds does not depend on theirs.
type byOffset struct {
	search   *canonical.Search // nil when it has no memory
	attempts int
	nodes    int64         // of all attempts
	work     int64         // of those
	capacity int64         // units
	outcome  exact.Outcome // of the last attempt of this round
	peak     int64         // units, of the layout that was found
}

const (
	// workShare bounds the work of byOffset by that of the searchers. A unit of it takes less time: it gets up to 40 % of the time.
	workShare = 10

	// mostDoublings bounds the nodes of an attempt, 2 << mostDoublings for each buffer.
	mostDoublings = 40
)

// tryByOffset makes attempts, each in the next order, until they are expected to do more work than their share. It returns the peak that
// was found, or noPeak.
func (r *restarts) tryByOffset() int64 {
	b := &r.offsets
	b.outcome, b.capacity = exact.Stopped, r.height(0)
	if r.round < shortRounds || !r.decide || r.c.in.Len() > canonical.MostBuffers {
		return noPeak
	}
	if b.search == nil {
		b.search = canonical.New(r.c.in)
	}
	orders, n := canonical.Orders(), int64(r.c.in.Len())
	for b.outcome == exact.Stopped && r.ctx.Err() == nil {
		nodes := n << min(1+b.attempts/len(orders), mostDoublings)
		each := n + int64(r.c.in.Sections()) // the work of a node
		if b.nodes > 0 {
			each = b.work / b.nodes
		}
		if b.work+nodes*each > workShare*r.work {
			return noPeak
		}
		b.outcome = b.search.Try(canonical.Attempt{
			Capacity: b.capacity, By: orders[b.attempts%len(orders)], Nodes: nodes, Stop: func() bool { return r.ctx.Err() != nil },
		})
		b.attempts++
		b.nodes += b.search.Nodes()
		b.work += b.search.Work()
	}
	if b.outcome != exact.Fits {
		return noPeak
	}
	b.peak = 0
	for k, size := range r.c.in.Size {
		b.peak = max(b.peak, b.search.Offset(k)+size)
	}
	return b.peak
}

// gather takes over what was found for a component, and returns the peak and the bound that follow.
func (b *byOffset) gather(c *component) (peak, bound int64) {
	switch {
	case b.outcome == exact.Fails:
		return c.peak, max(c.bound, b.capacity+1)
	case b.outcome == exact.Fits:
		for k := range c.best {
			c.best[k] = b.search.Offset(k)
		}
		return b.peak, c.bound
	}
	return c.peak, c.bound
}
