package dsa

import (
	"context"
	"time"
)

// What annealing takes for the work of skylines, in each chain: the more where it has come lower. Which of them does varies: lives of one
// length are for skylines, a few long ones among many short ones for annealing.
const (
	ahead  = 4
	behind = 0.25
)

// annealFrom is the step with which annealing begins: orders take long where many buffers live at one time.
const annealFrom = 2

// anneal tries orders of a component and goes on with annealing, beside skylines that have done so much work.
func (q *quest) anneal(c *component, goal, work int64) {
	if !q.anneals || c.steps < annealFrom || c.in.len() > annealItems || c.peak <= goal {
		return
	}
	share := behind
	if c.orders != nil && c.orders.peak == c.peak {
		share = ahead
	}
	if c.orders == nil {
		c.orders = newComponentSearch(q.ctx, c, Options{Capacity: goal, Seed: q.o.Seed, Workers: len(q.workers)})
		c.annealing = c.orders.newAnnealing(c.orders.tryItemOrders())
	}
	if a := c.annealing; a != nil {
		for most := min(int64(share*float64(work)), a.until(a.chainWork())); a.work < most && !a.ended(); {
			a.step()
		}
	}
	if s := c.orders; s.bases != nil && s.peak < c.peak {
		c.best = s.m.offsets(s.bases)
		q.learn(c, s.peak, c.bound, s.method)
	}
}

// ordersTime is the part of the time that is left that orders may take.
const ordersTime = 0.35

// tryItemOrders tries the orders that are not of skylines, which the portfolio has seen. If there is a deadline it does not take all of the time.
func (s *search) tryItemOrders() []start {
	deadline, ok := s.ctx.Deadline()
	if !ok {
		return s.tryOrdersFrom(len(skylineKeys))
	}
	all := s.ctx
	ctx, cancel := context.WithTimeout(all, time.Duration(ordersTime*float64(time.Until(deadline))))
	defer cancel()
	s.ctx = ctx
	starts := s.tryOrdersFrom(len(skylineKeys))
	s.ctx = all
	return starts
}

// newComponentSearch returns a search for a layout of a component, in units.
func newComponentSearch(ctx context.Context, c *component, o Options) *search {
	p := &Problem{Align: 1, Size: c.in.size}
	for k, lo := range c.in.lo {
		p.Start, p.End = append(p.Start, int64(lo)), append(p.End, int64(c.in.hi[k]))
	}
	m := newModel(p)
	return &search{ctx: ctx, m: m, o: o, bound: m.bound}
}
