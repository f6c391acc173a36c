package planner

import (
	"context"
	"sync"
	"time"

	"gm/internal/dsa"
)

// near is a solver that stops at a layout that is near its bound, once it has searched for a while.
type near struct{ dsa.Solver }

const (
	nearTime = 3 * time.Second / 2
	nearPart = 100 // it is at most this part of the bound above that
)

// Solve implements dsa.Solver.
func (n near) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		lock sync.Mutex
		best dsa.Progress
		late bool
	)
	stopIfNear := func() {
		if late && best.Peak > 0 && best.Peak <= best.Bound+best.Bound/nearPart {
			stop()
		}
	}
	o.Progress = func(now dsa.Progress) {
		lock.Lock()
		defer lock.Unlock()
		best = now
		stopIfNear()
	}
	timer := time.AfterFunc(nearTime, func() {
		lock.Lock()
		defer lock.Unlock()
		late = true
		stopIfNear()
	})
	defer timer.Stop()
	return n.Solver.Solve(ctx, p, o)
}
