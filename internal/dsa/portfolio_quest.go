package dsa

import (
	"context"
	"math"
	"slices"
	"sync"

	"gm/internal/dsa/exact"
)

// quest is a portfolio's work on one problem.
type quest struct {
	portfolio
	ctx     context.Context
	o       Options
	align   int64
	goal    int64        // units: a peak that is good enough, the capacity or else the load
	parts   []*component // the one with the greatest load first
	recent  []*component // those whose hunters have memory, the one deepened last at the end
	workers []workspace
	started int        // components that have a layout
	mu      sync.Mutex // held to report
}

// component is a part of a problem that shares no moment with others.
type component struct {
	in        *instance
	peak      int64 // units, of best; 0 when there is none yet
	bound     int64 // units
	best      []int64
	name      string     // of what found it
	hunt      *hunt      // nil before it is searched exactly
	orders    *search    // of orders to place its buffers in; nil before any is tried
	annealing *annealing // nil where there is nothing to be found
	steps     int        // of deepen, so far
	spent     bool       // nothing more is to be done
	lives     int64      // sections that all buffers live in, added up
	turns     int        // of races, so far
	cost      int64      // of one, in nodes of the index
}

// huntRounds is how many random rounds come before an exact search.
const huntRounds = 512

func newQuest(ctx context.Context, pf portfolio, p *Problem, o Options) *quest {
	in := newInstance(p)
	q := &quest{portfolio: pf, ctx: ctx, o: o, align: p.Align, goal: in.bound, workers: make([]workspace, o.workers())}
	if o.Capacity > 0 {
		q.goal = o.Capacity / p.Align
	}
	if q.goal < in.bound {
		q.members, q.rounds = q.members[:1], 0 // nothing fits: any layout will do
	}
	if _, ok := ctx.Deadline(); ok {
		q.work, q.nodes = math.MaxInt64, math.MaxInt64
		if q.rounds > 0 {
			q.rounds = math.MaxInt32
		}
	}
	for _, part := range in.components() {
		c := &component{in: part, bound: part.bound}
		for k, lo := range part.lo {
			c.lives += int64(part.hi[k] - lo)
		}
		q.parts = append(q.parts, c)
	}
	return q
}

// peak and bound are those of all components, in units.
func (q *quest) peak() int64 {
	peak := int64(0)
	for _, c := range q.parts {
		peak = max(peak, c.peak)
	}
	return peak
}

func (q *quest) bound() int64 {
	bound := int64(0)
	for _, c := range q.parts {
		bound = max(bound, c.bound)
	}
	return bound
}

// start finds the first layout of a component. One that stays below the given peak, that of others, is good enough; when there
// are others, a cancelled ctx does not keep it from finding one, for theirs are of no use without.
func (q *quest) start(c *component, peak int64) bool {
	rounds := 0
	if c.lives <= q.lives {
		rounds = min(huntRounds, q.rounds)
	}
	r := race{ctx: q.ctx, in: c.in, goal: max(q.goal, peak), late: peak > 0, most: q.work, progress: q.listen(c)}
	winner, ok := r.run(q.turn, len(q.members)-1+rounds, q.work, q.workers)
	c.turns, c.cost = r.turns, r.cost
	if ok {
		c.peak, c.best, c.name = winner.peak, r.best, q.turn(winner.turn).name
	}
	return ok
}

func (q *quest) turn(turn int) member { return q.at(turn, q.o.Seed) }

// adopt takes a layout of the whole problem.
func (q *quest) adopt(p *Problem, l Layout) {
	for _, c := range q.parts {
		c.peak, c.name = 0, l.Method
		for k, i := range c.in.id {
			c.best[k] = l.Offsets[i] / q.align
			c.peak = max(c.peak, c.best[k]+c.in.size[k])
		}
	}
}

// improve works on components that are too high until none is, or nothing is left to be spent on one that is, or steps were
// taken with it.
func (q *quest) improve(steps int) {
	for {
		c := q.worst()
		if c == nil || c.spent || c.steps >= steps {
			return
		}
		q.deepen(c)
		c.spent = c.spent || q.ctx.Err() != nil
	}
}

// worst returns the highest component, nil when it is low enough. When only the capacity matters it is the one, of all above it,
// that least was spent on, and nil when that is proven to be too small.
func (q *quest) worst() *component {
	goal := max(q.goal, q.bound())
	if q.o.Capacity > 0 && goal > q.goal {
		return nil
	}
	var worst *component
	for _, c := range q.parts {
		switch {
		case c.peak <= goal:
		case worst == nil, q.o.Capacity > 0 && c.steps < worst.steps, q.o.Capacity == 0 && c.peak > worst.peak:
			worst = c
		}
	}
	return worst
}

// deepen improves one component: with skylines of random keys, and an exact search in turn with them where that may do, annealing where not.
func (q *quest) deepen(c *component) {
	goal := max(q.goal, q.bound())
	c.steps++
	if c.lives > q.lives || c.peak > exact.MaxCapacity {
		work := min(c.cost<<min(c.steps+3, 40), q.work)
		q.spin(c, goal, work)
		q.anneal(c, goal, work)
		c.spent = work == q.work || q.rounds == 0
		return
	}
	if c.hunt == nil {
		c.hunt = &hunt{
			ctx: q.ctx, c: c, decide: q.o.Capacity > 0, seed: q.o.Seed, hunters: make([]hunter, huntersOf(c.lives)),
			progress: func(peak, bound int64) { q.learn(c, peak, bound, "exact") },
		}
	}
	q.remember(c)
	c.hunt.step(goal, q.workers)
	if !c.hunt.done() {
		q.spin(c, goal, c.hunt.work/4)
	}
	c.spent = c.hunt.done() || c.hunt.nodes >= q.nodes
}

// mostHunts is how many components may have hunters with memory, of up to 130 MB for each component.
const mostHunts = 8

// remember frees the memory of the hunters of the component that was not deepened for longest.
func (q *quest) remember(c *component) {
	q.recent = append(slices.DeleteFunc(q.recent, func(other *component) bool { return other == c }), c)
	if len(q.recent) > mostHunts {
		q.recent[0].hunt.forget()
		q.recent = slices.Delete(q.recent, 0, 1)
	}
}

// spin goes on with random rounds that cost so much work.
func (q *quest) spin(c *component, goal, work int64) {
	r := race{
		ctx: q.ctx, in: c.in, goal: goal, most: q.work, cost: c.cost, best: c.best,
		progress: q.listen(c),
	}
	r.lead.Store(&lead{turn: c.turns - 1, peak: c.peak, score: c.peak})
	winner, _ := r.run(q.turn, q.rounds, work, q.workers)
	c.peak, c.best, c.turns = winner.peak, r.best, r.turns
}

// learn notes a better peak or bound of a component.
func (q *quest) learn(c *component, peak, bound int64, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.peak == 0 {
		q.started++
	}
	if c.peak == 0 || peak < c.peak {
		c.peak, c.name = peak, name
	}
	c.bound = bound
	q.report(name)
}

// listen learns what a race on a component comes to.
func (q *quest) listen(c *component) func(lead) {
	return func(l lead) { q.learn(c, l.peak, c.bound, q.turn(l.turn).name) }
}

// report says how far the work has come, once all components have a layout.
func (q *quest) report(name string) {
	if q.o.Progress != nil && q.started == len(q.parts) {
		q.o.Progress(Progress{Peak: q.peak() * q.align, Bound: q.bound() * q.align, Method: name})
	}
}

// layout puts the components' layouts together.
func (q *quest) layout(p *Problem) Layout {
	l := Layout{Offsets: make([]int64, p.Len()), Peak: q.peak() * q.align, Bound: q.bound() * q.align, Method: q.members[0].name}
	highest := int64(0)
	for _, c := range q.parts {
		for k, i := range c.in.id {
			l.Offsets[i] = c.best[k] * q.align
		}
		if c.peak > highest {
			highest, l.Method = c.peak, c.name
		}
	}
	return l
}
