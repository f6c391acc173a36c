// Package solve finds an order of little load by all methods of package order, and proves how far it is from the best.
package solve

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"gm/internal/order"
	"gm/internal/order/downsets"
	"gm/internal/order/greedy"
	"gm/internal/order/mincut"
)

// Result is an order, its peak, and a lower bound of that of every order.
type Result struct {
	Order  []int32
	Peak   int64  // bytes
	Bound  int64  // bytes; the order is optimal if it is the peak
	Method string // that found the order
	Rounds int    // of the search behind the first orders
}

// Optimal reports whether no order has a lower peak.
func (r *Result) Optimal() bool { return r.Peak <= r.Bound }

// Options bound the search.
type Options struct {
	Rounds int    // random starts that are improved, at most; by default 3, and more for small problems
	States int    // sets that the exact search looks at, at most
	Nodes  int    // nodes of branch and bound, at most
	Seed   uint64 // of the random starts
}

// Default returns the options of gmplan order: an exact search in some 200 MiB.
func Default() Options { return Options{States: 1 << 20, Nodes: 16} }

// Order returns the best order that is found until the context ends. Without that end, it depends on the problem and the options alone.
func Order(ctx context.Context, l *order.Links, options Options) *Result {
	s := newSearch(l, options)
	s.best.Order, s.best.Method = order.Program(l.Problem.Ops()), "program"
	s.best.Peak, _ = order.Peak(l.Loads(s.best.Order))
	for _, step := range []func(context.Context){s.rules, s.climbs, s.improveStarts, s.exactSoon, s.branch, s.random, s.exactLast} {
		step(ctx)
		s.raise(ctx)
		if s.best.Optimal() || ctx.Err() != nil {
			break
		}
	}
	return s.best
}

type search struct {
	*order.Links
	Options
	reversed *order.Links
	cutter   *mincut.Cutter
	cutWork  int64 // operators and tensors that cuts may still look at
	starts   []start
	best     *Result
}

// start is an order that is to be improved.
type start struct {
	order  []int32
	method string
}

// maxCutWork bounds the time of the cuts of single operators: some seconds. It is met by problems of some ten thousand operators.
const maxCutWork = 400_000_000

func newSearch(l *order.Links, options Options) *search {
	return &search{Links: l, reversed: l.Reversed(), cutter: mincut.NewCutter(l), cutWork: maxCutWork, Options: options, best: &Result{}}
}

// take keeps an order if it is better than the best one.
func (s *search) take(made []int32, method string) {
	if peak, _ := order.Peak(s.Loads(made)); peak < s.best.Peak {
		s.best.Order, s.best.Peak, s.best.Method = made, peak, method
	}
}

// raise raises the bound to the greatest cut of all operators. An operator's cut is at most what it takes in the best order, so it is computed
// only where that is above the bound.
func (s *search) raise(ctx context.Context) {
	loads := s.Loads(s.best.Order)
	places := order.Program(len(loads))
	slices.SortFunc(places, func(a, b int32) int { return cmp.Or(cmp.Compare(loads[b], loads[a]), cmp.Compare(a, b)) })
	for _, place := range places {
		if loads[place] <= s.best.Bound || s.cutWork < 0 || ctx.Err() != nil {
			return
		}
		op := s.best.Order[place]
		if !s.cutter.Known(op) {
			s.cutWork -= int64(s.Problem.Ops() + len(s.Problem.Tensors))
		}
		s.best.Bound = max(s.best.Bound, s.cutter.Bound(op))
	}
}

// rules tries the rules in both directions.
func (s *search) rules(context.Context) {
	s.starts = append(s.starts, start{s.best.Order, "program"})
	for _, rule := range []greedy.Rule{greedy.EagerFree, greedy.LeastPeak} {
		s.starts = append(s.starts, start{greedy.Order(s.Links, rule), rule.String()},
			start{order.Reverse(greedy.Order(s.reversed, rule)), rule.String() + " reversed"})
	}
	for _, st := range s.starts {
		s.take(st.order, st.method)
	}
}

// climbs finds the lowest limits that climbs keep to.
func (s *search) climbs(ctx context.Context) {
	for _, program := range []bool{false, true} {
		for _, links := range []*order.Links{s.Links, s.reversed} {
			if made := s.below(ctx, links, program); made != nil {
				s.starts = append(s.starts, start{made, "climbs below a limit"})
			}
		}
	}
}

// below returns the order of the lowest limit that climbs keep to, nil if that is none below the best peak.
func (s *search) below(ctx context.Context, links *order.Links, program bool) []int32 {
	var best []int32
	for low, high := s.best.Bound, s.best.Peak; low < high && ctx.Err() == nil; {
		limit := low + (high-low-1)/2
		made, ok := greedy.Below(links, limit, program)
		if !ok {
			low = limit + 1
			continue
		}
		if links == s.reversed {
			made = order.Reverse(made)
		}
		best = made
		peak, _ := order.Peak(s.Loads(made))
		high = min(peak, limit)
		s.take(made, "climbs below a limit")
	}
	return best
}

// improveStarts improves all orders so far.
func (s *search) improveStarts(ctx context.Context) {
	for _, st := range s.starts {
		s.improve(ctx, st.order, st.method)
		if s.raise(ctx); s.best.Optimal() || ctx.Err() != nil {
			return
		}
	}
}

// improve improves an order by cuts and by exact search around its peaks.
func (s *search) improve(ctx context.Context, made []int32, method string) {
	for _, from := range [][]int32{made, s.cutter.Divide(ctx, made, s.best.Bound, divisions)} {
		made := downsets.Windows(ctx, s.Links, from, s.best.Bound)
		s.take(made, method+", cuts, windows")
	}
}

// divisions is how many cuts divide an order at most.
const divisions = 500

// exactSoon searches a small problem: to the end if it has few operators, and else for a short time.
func (s *search) exactSoon(ctx context.Context) {
	states := s.States
	if s.Problem.Ops() > fewOps {
		states = min(states, soonStates)
	}
	s.exact(ctx, states)
}

// exactLast searches what has more operators for long, below the best peak that other methods have found.
func (s *search) exactLast(ctx context.Context) {
	if s.Problem.Ops() > fewOps && s.States > soonStates {
		s.exact(ctx, s.States)
	}
}

const (
	fewOps     = 50      // networks of so many are mostly solved
	soonStates = 150_000 // sets that are looked at in a part of a second
)

// exact searches a small problem, looking at so many sets at most.
func (s *search) exact(ctx context.Context, states int) {
	n := s.Problem.Ops()
	if n > downsets.MaxOps {
		return
	}
	made, result := downsets.Search(ctx, s.Links, order.Program(n), 0, n, downsets.Limits{Enough: s.best.Bound, Below: s.best.Peak, States: states})
	switch result {
	case downsets.Found:
		s.take(made, "exact")
		s.best.Bound = s.best.Peak
	case downsets.None:
		s.best.Bound = s.best.Peak
	}
}

// By default so many operators are ordered at random, in all rounds together, but in no fewer rounds.
const (
	roundOps    = 6000
	leastRounds = 3
)

// random improves random starts.
func (s *search) random(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	rounds := s.Rounds
	if rounds == 0 {
		rounds = max(leastRounds, roundOps/max(1, s.Problem.Ops()))
	}
	for range rounds {
		if s.raise(ctx); s.best.Optimal() || ctx.Err() != nil {
			return
		}
		s.best.Rounds++
		part := []float64{0.02, 0.1, 0.5}[rng.IntN(3)]
		if rng.IntN(2) == 0 {
			s.improve(ctx, greedy.Noisy(s.Links, part, rng), "random lpmf")
		} else {
			s.improve(ctx, order.Reverse(greedy.Noisy(s.reversed, part, rng)), "random lpmf reversed")
		}
	}
}
