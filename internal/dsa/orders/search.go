// Package orders searches for a good order in which to place the items of a problem.
//
//   - search.go: a search, and the best layout it has found
//   - orders.go: orders by keys, and by the layouts of skylines
package orders

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"gm/internal/dsa"
	"gm/internal/dsa/crew"
	"gm/internal/dsa/rigid"
)

// Search is a search for a layout of a model, with the best found so far. Only the goroutine that owns it may change it.
type Search struct {
	Ctx     context.Context
	Model   *rigid.Model
	Options dsa.Options
	Bound   int64 // units: no layout has a lower peak

	Bases  []int64 // units, of each item, in the best layout; nil when there is none
	Peak   int64   // units
	Method string
}

// New prepares a search for a layout of a problem.
func New(ctx context.Context, p *dsa.Problem, o dsa.Options) (*Search, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return NewOf(ctx, rigid.New(p), o), nil
}

// NewOf prepares a search on a model.
func NewOf(ctx context.Context, m *rigid.Model, o dsa.Options) *Search {
	return &Search{Ctx: ctx, Model: m, Options: o, Bound: m.Bound}
}

// Goal returns the peak, in units, that ends the search.
func (s *Search) Goal() int64 { return max(s.Bound, s.Options.Capacity/s.Model.Problem.Align) }

// Ended reports whether nothing is left to find, or no time.
func (s *Search) Ended() bool {
	return s.stopped() || s.Bases != nil && (s.Peak <= s.Goal() || s.Refuted())
}

// stopped reports whether the time is over. After a deadline, a late layout is better than none.
func (s *Search) stopped() bool {
	err := s.Ctx.Err()
	return err != nil && (s.Bases != nil || !errors.Is(err, context.DeadlineExceeded))
}

// Refuted reports whether the capacity is proven to be too small.
func (s *Search) Refuted() bool {
	return s.Options.Capacity > 0 && s.Bound > s.Options.Capacity/s.Model.Problem.Align
}

// WorkLimit returns the given limit of work, or no limit when there is a deadline.
func (s *Search) WorkLimit(work int64) int64 {
	if _, ok := s.Ctx.Deadline(); ok {
		return math.MaxInt64
	}
	return work
}

// Offer makes a layout the best if its peak is lower.
func (s *Search) Offer(bases []int64, peak int64, method string) {
	if s.Bases != nil && peak >= s.Peak {
		return
	}
	s.Bases, s.Peak, s.Method = slices.Clone(bases), peak, method
	s.report()
}

// Prove records that no layout has a peak below bound.
func (s *Search) Prove(bound int64) {
	if bound > s.Bound {
		s.Bound = bound
		s.report()
	}
}

func (s *Search) report() {
	if s.Options.Progress != nil {
		s.Options.Progress(dsa.Progress{Peak: s.Peak * s.Model.Problem.Align, Bound: s.Bound * s.Model.Problem.Align, Method: s.Method})
	}
}

// Layout returns the best layout.
func (s *Search) Layout() (dsa.Layout, error) {
	if s.Bases == nil {
		return dsa.Layout{}, fmt.Errorf("solve: %w", context.Cause(s.Ctx))
	}
	align := s.Model.Problem.Align
	return dsa.Layout{
		Offsets: s.Model.Offsets(s.Bases), Peak: s.Peak * align, Bound: s.Bound * align, Method: s.Method,
	}, nil
}

// Each calls do for the numbers below n, on all workers.
func (s *Search) Each(n int, do func(i int)) {
	var wait crew.Crew
	var next atomic.Int64
	for range min(n, s.Options.NumWorkers()) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wait.Wait()
}
