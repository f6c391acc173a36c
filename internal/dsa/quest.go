package dsa

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// quest is a portfolio's work on one problem.
type quest struct {
	portfolio
	ctx     context.Context
	o       Options
	align   int64
	goal    int64        // units: a peak that is good enough, the capacity or else the load
	parts   []*component // the one with the greatest load first
	workers []workspace
	mu      sync.Mutex // held to report
}

// component is a part of a problem that shares no moment with others.
type component struct {
	in    *instance
	peak  int64 // units, of best; 0 when there is none yet
	bound int64 // units
	best  []int64
	name  string // of what found it
	lives int64  // sections that all buffers live in, added up
	turns int    // of races, so far
	cost  int64  // of one, in nodes of the index
}

// huntRounds is how many random rounds come before an exact search.
const huntRounds = 64

func newQuest(ctx context.Context, pf portfolio, p *Problem, o Options) *quest {
	in := newInstance(p)
	q := &quest{portfolio: pf, ctx: ctx, o: o, align: p.Align, goal: in.bound, workers: make([]workspace, o.workers())}
	if o.Capacity > 0 {
		q.goal = o.Capacity / p.Align
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

// hunted says whether a component is to be searched exactly.
func (q *quest) hunted(c *component) bool { return c.lives <= q.lives }

// start finds the first layout of a component. One that stays below the peak of another is good enough.
func (q *quest) start(c *component) bool {
	rounds := 0
	if q.hunted(c) {
		rounds = min(huntRounds, q.rounds)
	}
	r := race{ctx: q.ctx, in: c.in, goal: max(q.goal, q.peak())}
	winner, ok := r.run(q.turn, len(q.members)-1+rounds, q.work, q.workers)
	c.turns, c.cost = r.turns, r.cost
	if ok {
		c.peak, c.best, c.name = winner.peak, r.best, q.turn(winner.turn).name
	}
	return ok
}

func (q *quest) turn(turn int) member { return q.at(turn, q.o.Seed) }

// improve works on the components that are too high, the highest first. Each gets its share of the time.
func (q *quest) improve() {
	high := slices.Clone(q.parts)
	slices.SortStableFunc(high, func(a, b *component) int { return cmp.Compare(b.peak, a.peak) })
	reached := int64(0)
	for i, c := range high {
		goal := max(q.goal, reached)
		if c.peak > goal {
			ctx, cancel := q.share(high[i:], goal)
			q.deepen(ctx, c, goal)
			cancel()
		}
		reached = max(reached, c.peak)
	}
}

// share gives the first of some components the part of the time that is its due.
func (q *quest) share(high []*component, goal int64) (context.Context, context.CancelFunc) {
	among := 0
	for _, c := range high {
		if c.peak > goal {
			among++
		}
	}
	deadline, ok := q.ctx.Deadline()
	if !ok {
		return context.WithCancel(q.ctx)
	}
	return context.WithTimeout(q.ctx, time.Until(deadline)/time.Duration(among))
}

// deepen improves one component: with skylines of random keys, and an exact search in turn with them where that may do.
func (q *quest) deepen(ctx context.Context, c *component, goal int64) {
	if !q.hunted(c) {
		q.spin(ctx, c, goal, q.work)
		return
	}
	h := hunt{
		ctx: ctx, c: c, goal: goal, decide: q.o.Capacity > 0, seed: q.o.Seed, hunters: make([]hunter, huntersOf(c.lives)),
		progress: func(peak, bound int64) { q.learn(c, peak, bound, "exact") },
	}
	for h.nodes < q.nodes && !h.done() {
		h.step(q.workers)
		if !h.done() {
			q.spin(ctx, c, goal, h.work()/8)
		}
	}
}

// spin goes on with random rounds that cost so much work.
func (q *quest) spin(ctx context.Context, c *component, goal, work int64) {
	r := race{
		ctx: ctx, in: c.in, goal: goal, cost: c.cost, best: c.best,
		progress: func(peak int64) { q.learn(c, peak, c.bound, "skyline-random") },
	}
	r.lead.Store(&lead{turn: c.turns - 1, peak: c.peak, score: c.peak})
	winner, _ := r.run(q.turn, q.rounds, work, q.workers)
	c.peak, c.best, c.turns = winner.peak, r.best, r.turns
}

// learn notes a better peak or bound of a component.
func (q *quest) learn(c *component, peak, bound int64, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if peak < c.peak {
		c.peak, c.name = peak, name
	}
	c.bound = bound
	q.report(name)
}

// report says how far the work has come.
func (q *quest) report(name string) {
	if q.o.Progress != nil {
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
