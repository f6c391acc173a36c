package dsa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// portfolio runs its members on each component of a problem, in turn and on all workers, until one meets the bound, and
// keeps the best. Where they leave a gap it lays out repeated parts once, if that is lower, and then improves what is highest:
// small components are searched exactly, large ones with skylines of random keys and by annealing.
type portfolio struct {
	members []member
	rounds  int      // at most so many random rounds
	repeats *bilevel // nil for no such attempt
	general Solver   // of problems that are not plain; nil when they are refused

	// Without a deadline, what may be spent on a component.
	work  int64 // on all turns but the first, in nodes of the index looked at
	nodes int64 // on an exact search, in its nodes

	lives   int64 // components are searched exactly up to so many sections that all their buffers live in, added up
	anneals bool  // larger ones are annealed
}

// member is a method and the name it goes by.
type member struct {
	name   string
	method method
}

// Solve implements [Solver].
func (pf portfolio) Solve(ctx context.Context, p *Problem, o Options) (Layout, error) {
	if err := p.Validate(); err != nil {
		return Layout{}, err
	}
	if !p.Plain() {
		if pf.general == nil {
			return Layout{}, fmt.Errorf("%w: offsets that are given, ties, a period and alignments of single buffers are for the solvers auto, general, anneal and pairs", ErrInvalid)
		}
		return pf.general.Solve(ctx, p, o)
	}
	if n := len(pf.members); p.Len() > hasty && n > 1 {
		pf.members = slices.Concat(pf.members[n-1:], pf.members[:n-1])
	}
	q := newQuest(ctx, pf, p, o)
	peak := int64(0)
	for _, c := range q.parts {
		if !q.start(c, peak) {
			return Layout{}, fmt.Errorf("solve: %w", context.Cause(ctx))
		}
		peak = max(peak, c.peak)
	}
	if q.bound() > q.goal {
		return q.layout(p), nil
	}
	q.improve(stepsBeforeRepeats)
	if err := q.tryRepeats(p); err != nil {
		return Layout{}, err
	}
	q.improve(math.MaxInt)
	return q.layout(p), nil
}

// hasty is the number of buffers beyond which the last member, the one that is fast whatever the problem, comes first.
const hasty = 100_000

// stepsBeforeRepeats is how long the worst component is worked on before repeated parts are looked for: most are done by then.
const stepsBeforeRepeats = 4

// tryRepeats takes the layout that lays out repeated parts once if it is lower. It has a quarter of the time.
func (q *quest) tryRepeats(p *Problem) error {
	if q.repeats == nil || q.worst() == nil || q.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := q.ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
	}
	defer cancel()
	o := q.o
	o.Progress = nil
	l, err := q.repeats.solveRepeats(ctx, p, o)
	if err != nil {
		if errors.Is(err, ErrNoRepeats) || ctx.Err() != nil {
			return nil
		}
		return err
	}
	if l.Peak < q.peak()*q.align {
		q.adopt(p, l)
		q.report(l.Method)
	}
	return nil
}

// at returns the method of a turn.
func (pf portfolio) at(turn int, seed uint64) member {
	if turn < len(pf.members) {
		return pf.members[turn]
	}
	return member{"skyline-random", skylineAtRandom{seed: seed, round: uint64(turn - len(pf.members))}}
}
