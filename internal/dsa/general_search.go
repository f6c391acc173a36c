package dsa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// search is one run on a model and what it has come to. The goroutine that owns it changes it, and no other.
type search struct {
	ctx   context.Context
	m     *model
	o     Options
	bound int64 // units: no layout has a lower peak

	bases  []int64 // units, of each item: the best so far, nil when there is none
	peak   int64   // units
	method string
}

// newSearch prepares a problem.
func newSearch(ctx context.Context, p *Problem, o Options) (*search, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := newModel(p)
	return &search{ctx: ctx, m: m, o: o, bound: m.bound}, nil
}

// goal returns the peak, in units, that ends the search.
func (s *search) goal() int64 { return max(s.bound, s.o.Capacity/s.m.p.Align) }

// ended says whether there is nothing left to find, or no time.
func (s *search) ended() bool {
	return s.stopped() || s.bases != nil && (s.peak <= s.goal() || s.refuted())
}

// stopped says whether the time is over. After a deadline a late layout is better than none.
func (s *search) stopped() bool {
	err := s.ctx.Err()
	return err != nil && (s.bases != nil || !errors.Is(err, context.DeadlineExceeded))
}

// refuted says whether the capacity is proven to be too small.
func (s *search) refuted() bool { return s.o.Capacity > 0 && s.bound > s.o.Capacity/s.m.p.Align }

// until returns how much work there may be: as much as said, or any when there is a deadline.
func (s *search) until(work int64) int64 {
	if _, ok := s.ctx.Deadline(); ok {
		return math.MaxInt64
	}
	return work
}

// offer makes a layout the best if it is.
func (s *search) offer(bases []int64, peak int64, method string) {
	if s.bases != nil && peak >= s.peak {
		return
	}
	s.bases, s.peak, s.method = slices.Clone(bases), peak, method
	s.report()
}

// prove notes that no layout has a peak below bound.
func (s *search) prove(bound int64) {
	if bound > s.bound {
		s.bound = bound
		s.report()
	}
}

func (s *search) report() {
	if s.o.Progress != nil {
		s.o.Progress(Progress{Peak: s.peak * s.m.p.Align, Bound: s.bound * s.m.p.Align, Method: s.method})
	}
}

// layout returns what was found.
func (s *search) layout() (Layout, error) {
	if s.bases == nil {
		return Layout{}, fmt.Errorf("solve: %w", context.Cause(s.ctx))
	}
	align := s.m.p.Align
	return Layout{
		Offsets: s.m.offsets(s.bases), Peak: s.peak * align, Bound: s.bound * align, Method: s.method,
	}, nil
}

// each calls do for the numbers below n, on the workers that there are.
func (s *search) each(n int, do func(i int)) {
	var wait crew
	var next atomic.Int64
	for range min(n, s.o.workers()) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wait.Wait()
}
