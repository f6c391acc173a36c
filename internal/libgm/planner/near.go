package planner

import (
	"context"
	"sync"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/dsa"
)

// near is a solver that stops at a layout that leaves half of the room free that there is above the bound, or, once it has searched for a while, at one
// that has room or is near its bound.
type near struct {
	dsa.Solver
	spare float64 // by so much, as a share of the bound, the room is larger
}

const (
	nearTime = 3 * time.Second / 2
	nearPart = 0.01 // of the bound: a layout that is at most so much above it is near
)

// Solve implements dsa.Solver.
func (n near) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		lock sync.Mutex
		best dsa.Progress
	)
	above := n.spare / 2
	stopIfNear := func() {
		if best.Peak > 0 && float64(best.Peak) <= float64(best.Bound)*(1+above) {
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
		above = max(n.spare, nearPart)
		stopIfNear()
	})
	defer timer.Stop()
	return n.Solver.Solve(ctx, p, o)
}

// spare returns the share by which there is more room than the requests of an iteration take at their peaks, those of each stream for themselves; 0
// where there is less.
func spare(room int64, iteration []blocks.Request) float64 {
	most := int64(0)
	for _, peak := range peaks(iteration) {
		most += peak
	}
	if most == 0 {
		return 0
	}
	return max(0, float64(room)/float64(most)-1)
}

// peaks returns the most bytes that the requests of each stream take while an iteration is repeated without end.
func peaks(iteration []blocks.Request) map[cuda.Stream]int64 {
	n := len(iteration)
	freed := make([]map[cuda.Stream]int64, n) // by the request before which that is
	load := map[cuda.Stream]int64{}
	for i, r := range iteration {
		if r.Lasts == 0 || int(r.Lasts) > n {
			continue
		}
		at := (i + int(r.Lasts)) % n
		if freed[at] == nil {
			freed[at] = map[cuda.Stream]int64{}
		}
		freed[at][r.Stream] += r.Size
		if i+int(r.Lasts) >= n {
			load[r.Stream] += r.Size
		}
	}
	most := map[cuda.Stream]int64{}
	for i, r := range iteration {
		for stream, size := range freed[i] {
			load[stream] -= size
		}
		if r.Lasts > 0 && int(r.Lasts) <= n {
			load[r.Stream] += r.Size
			most[r.Stream] = max(most[r.Stream], load[r.Stream])
		}
	}
	return most
}
