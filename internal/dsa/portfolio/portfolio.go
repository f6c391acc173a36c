// Package portfolio solves plain problems with several methods, component by component.
//
//   - portfolio.go: the solver
//   - solution.go: the components of a problem, and which to improve next
//   - race.go: heuristics in turn on all workers, until one meets the bound
//   - restarts.go: exact search in many orders and at several heights
//   - anneal.go: annealing of components that are too large for an exact search
package portfolio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/heuristic"
)

// Solver runs its members on each component of a problem, in turn and on all workers, until one meets the bound, and
// keeps the best layout. If a gap remains, it tries to lay out repeated parts once, and then improves the highest component:
// a small one by exact search, a large one by skylines of random keys and by annealing.
type Solver struct {
	Members []Member
	Rounds  int             // the most random rounds
	Repeats *bilevel.Solver // nil to not look for repeated parts
	General dsa.Solver      // for problems that are not plain; nil to refuse them

	// Limits for each component when there is no deadline.
	Work  int64 // of all turns but the first, in nodes of the index
	Nodes int64 // of an exact search

	Lives   int64 // components are searched exactly while the sections that each buffer lives in add up to at most this
	Anneals bool  // larger components are annealed
}

// Member is a method with its name.
type Member struct {
	Name   string
	Method heuristic.Method
}

// Solve implements [dsa.Solver].
func (pf Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	if err := p.Validate(); err != nil {
		return dsa.Layout{}, err
	}
	if !p.Plain() {
		if pf.General == nil {
			return dsa.Layout{}, fmt.Errorf("%w: this solver takes no fixed offsets, ties, periods or alignments of single buffers: "+
				"use auto, general, anneal or pairs", dsa.ErrInvalid)
		}
		return pf.General.Solve(ctx, p, o)
	}
	if n := len(pf.Members); p.Len() > heuristic.ManyBuffers && n > 1 {
		pf.Members = slices.Concat(pf.Members[n-1:], pf.Members[:n-1])
	}
	s := newSolution(ctx, pf, p, o)
	peak := int64(0)
	for _, c := range s.parts {
		if !s.start(c, peak) {
			return dsa.Layout{}, fmt.Errorf("solve: %w", context.Cause(ctx))
		}
		peak = max(peak, c.peak)
	}
	if s.bound() > s.goal {
		return s.layout(p), nil
	}
	s.improve(stepsBeforeRepeats)
	if err := s.tryRepeats(p); err != nil {
		return dsa.Layout{}, err
	}
	s.improve(math.MaxInt)
	return s.layout(p), nil
}

// stepsBeforeRepeats is the number of steps on the worst component before repeated parts are looked for: most problems are solved by then.
const stepsBeforeRepeats = 4

// tryRepeats lays out repeated parts once, within a quarter of the time that is left, and takes that layout if it is lower.
func (s *solution) tryRepeats(p *dsa.Problem) error {
	if s.Repeats == nil || s.worst() == nil || s.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
	}
	defer cancel()
	o := s.o
	o.Progress = nil
	l, err := s.Repeats.SolveRepeats(ctx, p, o)
	if err != nil {
		if errors.Is(err, bilevel.ErrNoRepeats) || ctx.Err() != nil {
			return nil
		}
		return err
	}
	if l.Peak < s.peak()*s.align {
		s.adopt(p, l)
		s.report(l.Method)
	}
	return nil
}

// at returns the method of a turn.
func (pf Solver) at(turn int, seed uint64) Member {
	if turn < len(pf.Members) {
		return pf.Members[turn]
	}
	return Member{Name: "skyline-random", Method: heuristic.SkylineAtRandom{Seed: seed, Round: uint64(turn - len(pf.Members))}}
}
