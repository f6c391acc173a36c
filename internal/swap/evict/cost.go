package evict

import (
	"slices"
	"time"

	"gm/internal/swap"
)

// Costs knows what is evicted around each tensor, and what it takes to recompute that: the sets of evicted tensors that are computed from each
// other, in a union-find structure (Kirisame et al., ICLR 2021, section 4.1, h_DTR-eq). A tensor that comes back is subtracted from its
// set's cost, and the set is not divided.
type Costs struct {
	graph    *swap.Graph
	children [][]int32 // what is computed from each tensor
	set      []int32   // that each tensor is in; 0 for one that was never evicted or is here
	parent   []int32   // of sets
	cost     []time.Duration
	met      []int32
}

func newCosts(g *swap.Graph) *Costs {
	n := len(g.Tensors)
	c := &Costs{graph: g, children: make([][]int32, n), set: make([]int32, n), parent: []int32{0}, cost: []time.Duration{0}}
	for t := range g.Tensors {
		for _, from := range g.Tensors[t].From {
			c.children[from] = append(c.children[from], int32(t))
		}
	}
	return c
}

// root returns the number of the set that a set was joined to.
func (c *Costs) root(set int32) int32 {
	for c.parent[set] != set {
		c.parent[set] = c.parent[c.parent[set]]
		set = c.parent[set]
	}
	return set
}

// around lists the sets of evicted tensors next to a tensor. The list is valid until the next call.
func (c *Costs) around(t int32) []int32 {
	c.met = c.met[:0]
	for _, others := range [...][]int32{c.graph.Tensors[t].From, c.children[t]} {
		for _, o := range others {
			if c.set[o] == 0 {
				continue
			}
			if set := c.root(c.set[o]); !slices.Contains(c.met, set) {
				c.met = append(c.met, set)
			}
		}
	}
	return c.met
}

// gone adds an evicted tensor, if it can be recomputed.
func (c *Costs) gone(t int32) {
	set := int32(len(c.parent))
	cost := c.graph.Tensors[t].Recompute
	if cost == 0 {
		return
	}
	c.parent = append(c.parent, set)
	for _, other := range c.around(t) {
		c.parent[other] = set
		cost += c.cost[other]
	}
	c.cost = append(c.cost, cost)
	c.set[t] = set
}

// back takes a tensor out that is no longer evicted.
func (c *Costs) back(t int32) {
	set := c.root(c.set[t])
	c.cost[set] -= c.graph.Tensors[t].Recompute
	c.set[t] = 0
}

// Of returns what it takes to recompute a tensor and all evicted ones around it.
func (c *Costs) Of(t int32) time.Duration {
	cost := c.graph.Tensors[t].Recompute
	for _, set := range c.around(t) {
		cost += c.cost[set]
	}
	return cost
}
