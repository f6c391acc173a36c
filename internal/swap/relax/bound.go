// Package relax bounds from below how long a step takes that recomputes and copies nothing: by the linear relaxation of Checkmate's program
// (Jain et al., MLSys 2020, section 4), with rows for what is recomputed from tensors that have seen their last use.
//
//	bound.go    the bound
//	model.go    the program: what is held and recomputed, and from what; memory.go, the rows of memory; ghosts.go, those of dead tensors
//	lp.go       linear programs, and a method that proves a bound all the time
package relax

import (
	"math"
	"time"

	"gm/internal/swap"
)

// Effort is how much work goes into a bound.
type Effort struct {
	Blocks int // at how many operators memory is looked at, at most
	Rounds int // iterations of the method, at most
}

// Bound returns a time that no schedule which copies nothing is faster than, and false if an operator alone takes more memory than there is. Where
// there is no schedule for other reasons the time grows with the effort.
func Bound(g *swap.Graph, device int64, e Effort) (time.Duration, bool) {
	if g.Least() > device {
		return 0, false
	}
	const growth = 2e-5 // of the step: what is not worth waiting for
	m := newModel(g, device, e.Blocks)
	least := m.least(e.Rounds, growth*float64(g.Compute()))
	const most = 1 << 60
	return g.Compute() + time.Duration(math.Floor(min(least, most))), true
}
