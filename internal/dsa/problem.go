package dsa

import (
	"context"
	"errors"
	"runtime"
)

// ErrInvalid is wrapped by the errors about a problem that cannot be solved as stated.
var ErrInvalid = errors.New("invalid problem")

// Problem is a set of buffers, stored as columns of the same length. Buffer i lives in [Start[i], End[i]), positions in a sequence of
// events. A buffer without life or size conflicts with no other; it is placed at 0 unless Fixed or Ties say otherwise.
type Problem struct {
	Start []int64
	End   []int64
	Size  []int64 // bytes
	Align int64   // bytes, at least 1: every offset is a multiple of it, and every size is rounded up to a multiple

	// The rest is for few problems. A column is nil when no buffer uses it.
	Aligns []int64 // bytes: the offset is a multiple of this, too; 0 or 1 for any offset
	Fixed  []int64 // bytes: the offset of the buffer, or Free
	Ties   []Tie
	Period int64 // 0, or the length of an iteration that repeats without end: times are modulo Period
}

// Free marks a buffer whose offset the solver chooses.
const Free = -1

// Tie fixes the distance of two buffers: the offset of B is the offset of A plus Delta. With a Delta of 0 they share an address, as
// when an operator works in place; with the size of A, B follows A. Buffers that are tied, directly or through others, may
// overlap at any time.
type Tie struct {
	A, B  int32
	Delta int64 // bytes
}

// Len returns the number of buffers.
func (p *Problem) Len() int { return len(p.Size) }

// Plain reports whether the problem has only lives, sizes and one alignment.
func (p *Problem) Plain() bool {
	return p.Aligns == nil && p.Fixed == nil && len(p.Ties) == 0 && p.Period == 0
}

// Layout is a solution.
type Layout struct {
	Offsets []int64 // bytes, one for each buffer, in the problem's order
	Peak    int64   // bytes: the highest end of a buffer, its size rounded up
	Bound   int64   // bytes: no layout has a lower peak, as the solver has proven
	Method  string  // the solver that found the layout; for a portfolio, its member
}

// Optimal reports whether the layout is proven to have the least peak.
func (l Layout) Optimal() bool { return l.Peak == l.Bound }

// Options apply to all solvers. With the zero value a solver looks for the least peak, on all cores.
type Options struct {
	Capacity int64          // bytes: the search ends at the first layout that fits; 0 for the least peak
	Seed     uint64         // for random choices
	Workers  int            // goroutines; 0 for the number of cores
	Progress func(Progress) // unless nil, called for every better layout or bound, by one goroutine at a time
}

// NumWorkers returns the number of goroutines to use.
func (o Options) NumWorkers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Progress is the state of a search.
type Progress struct {
	Peak   int64 // bytes, of the best layout so far
	Bound  int64 // bytes
	Method string
}

// Solver finds a layout. Solve must not change the problem, must be safe for concurrent use, and must return soon
// after ctx is done, with the best layout found until then. If none was found, it returns the error of a cancelled ctx; after a
// deadline it still makes one layout, as fast as it can. If the capacity is proven too small, the bound of the layout is
// above it; if no layout that fits was found, the peak is.
type Solver interface {
	Solve(ctx context.Context, p *Problem, o Options) (Layout, error)
}

// Units returns the size of a buffer in units of the alignment, rounded up.
func (p *Problem) Units(i int) int64 {
	n := p.Size[i] / p.Align
	if n*p.Align < p.Size[i] {
		n++
	}
	return n
}
