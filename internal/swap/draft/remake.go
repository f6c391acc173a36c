package draft

import (
	"time"

	"gm/internal/swap"
)

// mostGhosts is how many dead tensors may be recomputed for one that is wanted. More than a few are never worth their time.
const mostGhosts = 64

// Remake knows what it takes to recompute tensors.
//
// An input of the recomputation either is still kept, or has seen its last use: then it is a ghost, which is recomputed for this purpose and
// freed at once.
type Remake struct {
	graph *swap.Graph
	Rank  []int32 // a tensor's is greater than those of all that it is computed from
	able  []bool  // its operator can be run again
	seen  []int32 // the search in which a tensor was met
	turn  int32
}

func newRemake(g *swap.Graph, writers *swap.Lists) *Remake {
	n := len(g.Tensors)
	r := &Remake{graph: g, Rank: make([]int32, n), able: make([]bool, n), seen: make([]int32, n)}
	for t := range g.Tensors {
		r.Rank[t], r.able[t] = -1, g.Tensors[t].Recompute > 0
	}
	next := int32(0)
	for op := range g.Ops {
		for _, t := range writers.Of(int32(op)) {
			next = r.order(t, next)
		}
	}
	return r
}

// open marks a tensor whose rank is being determined.
const open = -2

// order ranks a tensor and those of the same operator that it is computed from. Of tensors that would each be computed from the other neither
// can be recomputed.
func (r *Remake) order(t, next int32) int32 {
	if r.Rank[t] != -1 {
		return next
	}
	r.Rank[t] = open
	for _, from := range r.graph.Tensors[t].From {
		if r.Rank[from] == open {
			r.able[t] = false
			continue
		}
		next = r.order(from, next)
	}
	r.Rank[t] = next
	return next + 1
}

// Able reports whether a tensor's operator can be run again.
func (r *Remake) Able(t int32) bool { return r.able[t] }

// Ordered lists all tensors, each behind those that it is computed from.
func (r *Remake) Ordered() []int32 {
	all := make([]int32, len(r.Rank))
	for t, rank := range r.Rank {
		all[rank] = int32(t)
	}
	return all
}

// Recipe is how tensors are recomputed before an operator.
type Recipe struct {
	Ghosts []int32 // to be computed before, in this order
	Needs  []int32 // to be on the device
	opened int     // ghosts of the last tensor
}

// Begin starts another recipe.
func (r *Remake) Begin(to *Recipe) {
	r.turn++
	*to = Recipe{to.Ghosts[:0], to.Needs[:0], 0}
}

// Add adds tensor t to a recipe for operator op. Tensors that are not on the device are those for which gone returns true. Add returns false if t
// cannot be recomputed.
func (r *Remake) Add(to *Recipe, t, op int32, gone func(t, op int32) bool) bool {
	to.opened = 0
	return r.extend(to, t, op, gone)
}

func (r *Remake) extend(to *Recipe, t, op int32, gone func(t, op int32) bool) bool {
	if !r.able[t] {
		return false
	}
	for _, from := range r.graph.Tensors[t].From {
		if r.seen[from] == r.turn {
			continue
		}
		r.seen[from] = r.turn
		if !gone(from, op) {
			to.Needs = append(to.Needs, from)
			continue
		}
		if to.opened++; to.opened > mostGhosts || !r.extend(to, from, op, gone) {
			return false
		}
		to.Ghosts = append(to.Ghosts, from)
	}
	return true
}

// Dead reports whether a tensor has seen its last use before an operator.
func (r *Remake) Dead(t, op int32) bool { return r.graph.Tensors[t].Last() < op }

// Beside returns the most bytes that are taken while a tensor, or a ghost of a recipe, is recomputed, beside these.
func (r *Remake) Beside(to *Recipe, t int32) int64 {
	most := r.graph.Tensors[t].Scratch
	for _, ghost := range to.Ghosts {
		most = max(most, r.graph.Tensors[ghost].Scratch)
	}
	return most
}

// Price is what it takes to recompute a tensor.
type Price struct {
	Took   time.Duration // of the compute stream
	Launch time.Duration // of the program
	Ghosts int64         // bytes
	Beside int64         // bytes that are taken meanwhile, beside these and the tensor
}

// Price returns what it takes to recompute a tensor before an operator.
func (r *Remake) Price(to *Recipe, t, op int32) (price Price, ok bool) {
	r.Begin(to)
	if !r.Add(to, t, op, r.Dead) {
		return Price{}, false
	}
	price.Took, price.Launch, price.Beside = r.graph.Tensors[t].Recompute, r.graph.Tensors[t].Relaunch, r.Beside(to, t)
	for _, ghost := range to.Ghosts {
		price.Took += r.graph.Tensors[ghost].Recompute
		price.Launch += r.graph.Tensors[ghost].Relaunch
		price.Ghosts += r.graph.Tensors[ghost].Bytes
	}
	return price, true
}
