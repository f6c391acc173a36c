package portfolio

import (
	"context"
	"math"
	"slices"
	"sync"

	"gm/internal/dsa"
	"gm/internal/dsa/anneal"
	"gm/internal/dsa/exact"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/sections"
)

// solution is the work of a portfolio on one problem: a layout for each component, and how to improve it.
type solution struct {
	Solver
	ctx     context.Context
	o       dsa.Options
	align   int64
	goal    int64        // units: a peak that is good enough: the capacity, or the load without one
	parts   []*component // the one with the greatest load first
	recent  []*component // those whose searchers hold memory, the most recently improved last
	workers []worker
	started int        // components that have a layout
	mu      sync.Mutex // held to report
}

// component is a part of a problem that shares no moment with others.
type component struct {
	in        *sections.Instance
	peak      int64 // units, of best; 0 when there is none yet
	bound     int64 // units
	best      []int64
	name      string            // of the method that found it
	restarts  *restarts         // nil before it is searched exactly
	orders    *orders.Search    // of orders to place its buffers in; nil before any is tried
	annealing *anneal.Annealing // nil where there is nothing to be found
	steps     int               // calls of improveOne so far
	spent     bool              // no work is left to be done
	lives     int64             // the numbers of sections that each buffer lives in, added up
	turns     int               // of races so far
	cost      int64             // of one turn, in nodes of the index
}

// FirstRounds is the number of random rounds before an exact search.
const FirstRounds = 512

func newSolution(ctx context.Context, pf Solver, p *dsa.Problem, o dsa.Options) *solution {
	in := sections.New(p)
	s := &solution{Solver: pf, ctx: ctx, o: o, align: p.Align, goal: in.Bound, workers: make([]worker, o.NumWorkers())}
	if o.Capacity > 0 {
		s.goal = o.Capacity / p.Align
	}
	if s.goal < in.Bound {
		s.Members, s.Rounds = s.Members[:1], 0 // nothing fits: any layout will do
	}
	if _, ok := ctx.Deadline(); ok {
		s.Work, s.Nodes = math.MaxInt64, math.MaxInt64
		if s.Rounds > 0 {
			s.Rounds = math.MaxInt32
		}
	}
	for _, part := range in.Components() {
		c := &component{in: part, bound: part.Bound}
		for k, lo := range part.Lo {
			c.lives += int64(part.Hi[k] - lo)
		}
		s.parts = append(s.parts, c)
	}
	return s
}

// peak returns the highest peak of all components, in units.
func (s *solution) peak() int64 {
	peak := int64(0)
	for _, c := range s.parts {
		peak = max(peak, c.peak)
	}
	return peak
}

// bound returns the highest bound of all components, in units.
func (s *solution) bound() int64 {
	bound := int64(0)
	for _, c := range s.parts {
		bound = max(bound, c.bound)
	}
	return bound
}

// start finds the first layout of a component. A layout below the given peak, the highest of the components before it, is good enough.
// After the first component it finds one even when ctx is cancelled, since the layouts of the others are useless without it.
func (s *solution) start(c *component, peak int64) bool {
	rounds := 0
	if c.lives <= s.Lives {
		rounds = min(FirstRounds, s.Rounds)
	}
	r := race{ctx: s.ctx, in: c.in, goal: max(s.goal, peak), late: peak > 0, most: s.Work, progress: s.listen(c)}
	winner, ok := r.run(s.turn, len(s.Members)-1+rounds, s.Work, s.workers)
	c.turns, c.cost = r.turns, r.cost
	if ok {
		c.peak, c.best, c.name = winner.peak, r.best, s.turn(winner.turn).Name
	}
	return ok
}

func (s *solution) turn(turn int) Member { return s.at(turn, s.o.Seed) }

// adopt takes a layout of the whole problem.
func (s *solution) adopt(p *dsa.Problem, l dsa.Layout) {
	for _, c := range s.parts {
		c.peak, c.name = 0, l.Method
		for k, i := range c.in.ID {
			c.best[k] = l.Offsets[i] / s.align
			c.peak = max(c.peak, c.best[k]+c.in.Size[k])
		}
	}
}

// improve works on the components that are too high. It ends when none is, or when the next one has no work left or has had the given
// number of steps.
func (s *solution) improve(steps int) {
	for {
		c := s.worst()
		if c == nil || c.spent || c.steps >= steps {
			return
		}
		s.improveOne(c)
		c.spent = c.spent || s.ctx.Err() != nil
	}
}

// worst returns the highest component, or nil when it is low enough. With a capacity it returns, of the components above it, the one with
// the fewest steps, or nil when the capacity is proven to be too small.
func (s *solution) worst() *component {
	goal := max(s.goal, s.bound())
	if s.o.Capacity > 0 && goal > s.goal {
		return nil
	}
	var worst *component
	for _, c := range s.parts {
		switch {
		case c.peak <= goal:
		case worst == nil, s.o.Capacity > 0 && c.steps < worst.steps, s.o.Capacity == 0 && c.peak > worst.peak:
			worst = c
		}
	}
	return worst
}

// improveOne improves one component by skylines of random keys, in turn with exact search, or with annealing where the component is too
// large for that.
func (s *solution) improveOne(c *component) {
	goal := max(s.goal, s.bound())
	c.steps++
	if c.lives > s.Lives || c.peak > exact.MaxCapacity {
		work := min(c.cost<<min(c.steps+3, 40), s.Work)
		s.raceOn(c, goal, work)
		s.anneal(c, goal, work)
		c.spent = work == s.Work || s.Rounds == 0
		return
	}
	if c.restarts == nil {
		c.restarts = &restarts{
			ctx: s.ctx, c: c, decide: s.o.Capacity > 0, seed: s.o.Seed, searchers: make([]searcher, searcherCount(c.lives)),
			progress: func(peak, bound int64) { s.learn(c, peak, bound, "exact") },
		}
	}
	s.remember(c)
	c.restarts.step(goal, s.workers)
	if !c.restarts.done() {
		s.raceOn(c, goal, c.restarts.work/4)
	}
	c.spent = c.restarts.done() || c.restarts.nodes >= s.Nodes
}

// mostRemembered is the number of components whose searchers may hold memory, up to 130 MB for each component.
const mostRemembered = 8

// remember notes that a component is improved, and frees the memory of the searchers of the one that was improved least recently.
func (s *solution) remember(c *component) {
	s.recent = append(slices.DeleteFunc(s.recent, func(other *component) bool { return other == c }), c)
	if len(s.recent) > mostRemembered {
		s.recent[0].restarts.forget()
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}

// raceOn continues the race of a component with random rounds, at a cost of up to the given work.
func (s *solution) raceOn(c *component, goal, work int64) {
	r := race{
		ctx: s.ctx, in: c.in, goal: goal, most: s.Work, cost: c.cost, best: c.best,
		progress: s.listen(c),
	}
	r.lead.Store(&lead{turn: c.turns - 1, peak: c.peak, score: c.peak})
	winner, _ := r.run(s.turn, s.Rounds, work, s.workers)
	c.peak, c.best, c.turns = winner.peak, r.best, r.turns
}

// learn records a better peak or bound of a component.
func (s *solution) learn(c *component, peak, bound int64, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.peak == 0 {
		s.started++
	}
	if c.peak == 0 || peak < c.peak {
		c.peak, c.name = peak, name
	}
	c.bound = bound
	s.report(name)
}

// listen returns a function that learns the results of a race on a component.
func (s *solution) listen(c *component) func(lead) {
	return func(l lead) { s.learn(c, l.peak, c.bound, s.turn(l.turn).Name) }
}

// report calls Progress, once all components have a layout.
func (s *solution) report(name string) {
	if s.o.Progress != nil && s.started == len(s.parts) {
		s.o.Progress(dsa.Progress{Peak: s.peak() * s.align, Bound: s.bound() * s.align, Method: name})
	}
}

// layout combines the layouts of the components.
func (s *solution) layout(p *dsa.Problem) dsa.Layout {
	l := dsa.Layout{Offsets: make([]int64, p.Len()), Peak: s.peak() * s.align, Bound: s.bound() * s.align, Method: s.Members[0].Name}
	highest := int64(0)
	for _, c := range s.parts {
		for k, i := range c.in.ID {
			l.Offsets[i] = c.best[k] * s.align
		}
		if c.peak > highest {
			highest, l.Method = c.peak, c.name
		}
	}
	return l
}
