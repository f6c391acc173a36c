// Package canonical is the method of google/minimalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
// Machine Learning", ASPLOS 2023): depth-first search in which offsets do not decrease. It is here for comparison.
//
//   - canonical.go: the solver, which lowers the capacity and tries orders in turn
//   - search.go: the search for one capacity and one order
//   - state.go: what a placement changes, and its undoing
package canonical

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gm/internal/dsa"
	"gm/internal/dsa/exact"
	"gm/internal/dsa/heuristic"
	"gm/internal/dsa/sections"
)

// Solver searches in three orders in turn, each until it has visited twice as many nodes as there are buffers, then four times, and so on.
// Without a capacity it looks for a layout below the best one, until none exists.
type Solver struct {
	Nodes int64 // without a deadline: the most nodes, for the first layout and all others
}

// Solve implements [dsa.Solver].
func (c Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	if err := p.Validate(); err != nil {
		return dsa.Layout{}, err
	}
	if !p.Plain() {
		return dsa.Layout{}, fmt.Errorf("%w: minimalloc takes no fixed offsets, ties, periods or alignments of single buffers", dsa.ErrInvalid)
	}
	if p.Len() > MostBuffers {
		return dsa.Layout{}, fmt.Errorf("%w: minimalloc takes %d buffers at most, and this problem has %d: it would need too much memory", dsa.ErrInvalid, MostBuffers, p.Len())
	}
	if _, ok := ctx.Deadline(); ok {
		c.Nodes = math.MaxInt64
	}
	in := sections.New(p)
	r := &run{
		Search: New(in), in: in, problem: p, progress: o.Progress, left: c.Nodes, bound: in.Bound,
		layout: dsa.Layout{Offsets: make([]int64, p.Len()), Method: "minimalloc"},
	}
	r.stop = func() bool { return ctx.Err() != nil }
	if !r.first() {
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			return dsa.Layout{}, fmt.Errorf("solve: %w", context.Cause(ctx))
		}
		r.late()
		return r.layout, nil
	}
	if o.Capacity > 0 {
		if goal := o.Capacity / p.Align; r.peak > goal && r.bound <= goal {
			r.decide(goal)
		}
		return r.layout, nil
	}
	for r.peak > r.bound && r.decide(r.peak-1) {
	}
	return r.layout, nil
}

// MostBuffers is how many buffers a problem may have: for these a search takes some 3 GB.
const MostBuffers = 20_000

// run is the work on one problem.
type run struct {
	*Search
	in       *sections.Instance
	problem  *dsa.Problem
	progress func(dsa.Progress)
	stop     func() bool
	left     int64 // nodes
	peak     int64 // units
	bound    int64 // units
	layout   dsa.Layout
}

// first finds a layout of any height, for which the search does not backtrack. It returns false when it was stopped.
func (r *run) first() bool {
	if r.Try(Attempt{Capacity: math.MaxInt64, By: Orders()[0], Nodes: math.MaxInt64, Stop: r.stop}) != exact.Fits {
		return false
	}
	r.left -= min(r.Nodes(), r.left)
	r.take()
	return true
}

// late takes the layout of a skyline: when the time is over before there is a first one, a layout is better than none.
func (r *run) late() {
	r.layout.Method = "skyline-A"
	heuristic.SkylineBy("A").Layout(r.in, &heuristic.Workspace{}, func(int64) bool { return false }, r.offset)
	r.take()
}

// decide searches for a layout within a capacity and reports whether it found one.
func (r *run) decide(capacity int64) bool {
	for limit := 2 * int64(r.in.Len()); r.left > 0; limit *= 2 {
		for _, by := range Orders() {
			outcome := r.Try(Attempt{Capacity: capacity, By: by, Nodes: min(limit, r.left), Stop: r.stop})
			r.left -= min(r.Nodes(), r.left)
			switch {
			case outcome == exact.Fits:
				r.take()
				return true
			case outcome == exact.Fails:
				r.bound = capacity + 1
				r.report()
				return false
			case r.left == 0 || r.stop():
				return false
			}
		}
	}
	return false
}

// take keeps the offsets as the layout.
func (r *run) take() {
	r.peak = 0
	for k, i := range r.in.ID {
		r.layout.Offsets[i] = r.Offset(k) * r.problem.Align
		r.peak = max(r.peak, r.Offset(k)+r.in.Size[k])
	}
	r.report()
}

func (r *run) report() {
	r.layout.Peak, r.layout.Bound = r.peak*r.problem.Align, r.bound*r.problem.Align
	if r.progress != nil {
		r.progress(dsa.Progress{Peak: r.layout.Peak, Bound: r.layout.Bound, Method: r.layout.Method})
	}
}
