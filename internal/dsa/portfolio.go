package dsa

import (
	"context"
	"fmt"
)

// portfolio runs its members on each component of a problem, in turn and on all cores, until one meets the bound, and
// keeps the best. After the members come rounds of the randomised skyline.
type portfolio struct {
	members []member
	rounds  int   // at most so many random rounds
	work    int64 // what all turns on a component but the first may cost, in nodes of the index looked at
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
	in := newInstance(p)
	layout := Layout{Offsets: make([]int64, p.Len()), Bound: in.bound * p.Align, Method: pf.members[0].name}
	workers := make([]workspace, o.workers())
	peak := int64(0)
	for _, part := range in.components() {
		// A part that fits below the peak of another costs nothing, so there is no need to do better.
		r := race{ctx: ctx, in: part, goal: max(in.bound, peak)}
		winner, ok := r.run(pf.at, len(pf.members)-1+pf.rounds, pf.work, workers)
		if !ok {
			return Layout{}, fmt.Errorf("solve: %w", context.Cause(ctx))
		}
		for k, i := range part.id {
			layout.Offsets[i] = r.best[k] * p.Align
		}
		if winner.peak > peak {
			peak, layout.Method = winner.peak, pf.at(winner.turn).name
		}
	}
	layout.Peak = peak * p.Align
	return layout, nil
}

// at returns the method of a turn.
func (pf portfolio) at(turn int) member {
	if turn < len(pf.members) {
		return pf.members[turn]
	}
	return member{"skyline-random", skylineAtRandom{round: uint64(turn - len(pf.members))}}
}
