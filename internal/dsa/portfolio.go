package dsa

import (
	"context"
	"fmt"
)

// portfolio runs its members on each component of a problem, in turn and on all workers, until one meets the bound, and
// keeps the best. Where they leave a gap, small components are searched exactly, large ones with skylines of random keys.
type portfolio struct {
	members []member
	rounds  int   // at most so many random rounds
	work    int64 // without a deadline: what all turns on a component but the first may cost, in nodes of the index looked at

	lives int64 // components are searched exactly up to so many sections that all their buffers live in, added up
	nodes int64 // without a deadline: what that may cost, in nodes of its own
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
	q := newQuest(ctx, pf, p, o)
	for _, c := range q.parts {
		if !q.start(c) {
			return Layout{}, fmt.Errorf("solve: %w", context.Cause(ctx))
		}
		q.report(c.name)
	}
	if q.bound() <= q.goal {
		q.improve()
	}
	return q.layout(p), nil
}

// at returns the method of a turn.
func (pf portfolio) at(turn int, seed uint64) member {
	if turn < len(pf.members) {
		return pf.members[turn]
	}
	return member{"skyline-random", skylineAtRandom{seed: seed, round: uint64(turn - len(pf.members))}}
}
