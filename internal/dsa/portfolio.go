package dsa

import (
	"context"
	"fmt"
	"runtime"
)

// portfolio runs its members on each component of a problem, in turn and on all cores, until one meets the bound, and
// keeps the best. After the members come rounds of the randomised skyline.
type portfolio struct {
	members []member
	rounds  int // at most so many random rounds
	work    int // the rounds on a component may place so many buffers, all together
}

// member is a method and the name it goes by.
type member struct {
	name   string
	method method
}

// Solve implements [Solver].
func (pf portfolio) Solve(ctx context.Context, p *Problem) (Layout, error) {
	if err := p.Validate(); err != nil {
		return Layout{}, err
	}
	in := newInstance(p)
	layout := Layout{Offsets: make([]int64, p.Len()), Bound: in.bound * p.Align, Method: pf.members[0].name}
	workers := make([]workspace, runtime.GOMAXPROCS(0))
	peak := int64(0)
	for _, part := range in.components() {
		// A part that fits below the peak of another costs nothing, so there is no need to do better.
		r := newRace(ctx, part, max(in.bound, peak), pf.turns(part))
		winner, ok := r.run(pf.at, workers)
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

// turns returns how many methods may be tried on a component.
func (pf portfolio) turns(part *instance) int {
	return len(pf.members) + min(pf.rounds, pf.work/part.len())
}

// at returns the method of a turn.
func (pf portfolio) at(turn int) member {
	if turn < len(pf.members) {
		return pf.members[turn]
	}
	return member{"skyline-random", skylineAtRandom{round: uint64(turn - len(pf.members))}}
}
