package portfolio

import (
	"context"

	"gm/internal/dsa"
	"gm/internal/dsa/anneal"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/rigid"
)

// The work of each chain of annealing, as a multiple of the work of skylines: more while annealing has the lower layout. Which of the two
// is better varies: skylines for lives of similar length, annealing for a few long lives among many short ones.
const (
	ahead  = 4
	behind = 0.25
)

// annealFrom is the step at which annealing begins: to try orders takes long where many buffers live at one time.
const annealFrom = 2

// anneal improves a component by orders of its buffers and then by annealing. The work is that which skylines were given in this step.
func (s *solution) anneal(c *component, goal, work int64) {
	if !s.Anneals || c.steps < annealFrom || c.in.Len() > anneal.MaxItems || c.peak <= goal {
		return
	}
	share := behind
	if c.orders != nil && c.orders.Peak == c.peak {
		share = ahead
	}
	if c.orders == nil {
		c.orders = newComponentSearch(s.ctx, c, dsa.Options{Capacity: goal, Seed: s.o.Seed, Workers: len(s.workers)})
		c.annealing = anneal.New(c.orders, c.orders.TryItemKeys())
	}
	if a := c.annealing; a != nil {
		for most := min(int64(share*float64(work)), a.WorkLimit(anneal.Work(a.Model))); a.Work < most && !a.Ended(); {
			a.Step()
		}
	}
	if found := c.orders; found.Bases != nil && found.Peak < c.peak {
		c.best = found.Model.Offsets(found.Bases)
		s.learn(c, found.Peak, c.bound, found.Method)
	}
}

// newComponentSearch returns a search for a layout of a component, in units.
func newComponentSearch(ctx context.Context, c *component, o dsa.Options) *orders.Search {
	p := &dsa.Problem{Align: 1, Size: c.in.Size}
	for k, lo := range c.in.Lo {
		p.Start, p.End = append(p.Start, int64(lo)), append(p.End, int64(c.in.Hi[k]))
	}
	return orders.NewOf(ctx, rigid.New(p), o)
}
