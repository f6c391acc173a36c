package dsa

import (
	"context"
	"errors"
	"runtime"
)

// ErrInvalid wraps what is wrong with a problem that cannot be solved as stated.
var ErrInvalid = errors.New("invalid problem")

// Problem is a set of buffers, one slice a column, all of one length. Buffer i lives in [Start[i], End[i]), positions
// in the order of events. A buffer whose life or size is empty conflicts with none and is placed at 0, or where else it has to be.
type Problem struct {
	Start []int64
	End   []int64
	Size  []int64 // bytes
	Align int64   // bytes, at least 1: every offset is a multiple, and every size counts rounded up to one

	// What few problems have. The columns are nil when no buffer has such a thing.
	Aligns []int64 // bytes: the buffer's offset is a multiple of this one too; 0 or 1 for any
	Fixed  []int64 // bytes: the buffer's offset is given; Free when it is not
	Ties   []Tie
	Period int64 // 0, or the length of an iteration that is repeated without end: lives count modulo it
}

// Free stands for the offset of a buffer that a solver may choose.
const Free = -1

// Tie fixes the distance of two buffers: the offset of B is that of A and Delta. With a Delta of 0 they share an address, as
// when an operator works in place, with the size of A they are neighbours. Tied buffers, directly or through others, may
// overlap each other at any time.
type Tie struct {
	A, B  int32
	Delta int64 // bytes
}

// Len returns the number of buffers.
func (p *Problem) Len() int { return len(p.Size) }

// Plain says whether the problem has nothing but lives, sizes and one alignment.
func (p *Problem) Plain() bool {
	return p.Aligns == nil && p.Fixed == nil && len(p.Ties) == 0 && p.Period == 0
}

// Layout is a solution.
type Layout struct {
	Offsets []int64 // bytes, one for each buffer, in the problem's order
	Peak    int64   // bytes: the highest end of a buffer, its size rounded up
	Bound   int64   // bytes: the solver has proven that no layout has a lower peak
	Method  string  // the name of the solver that found it: for a portfolio, the member
}

// Optimal says whether the layout is proven to have the least peak.
func (l Layout) Optimal() bool { return l.Peak == l.Bound }

// Options are the same for all solvers. The zero value asks for the least peak, on all cores.
type Options struct {
	Capacity int64          // bytes: the search ends with a layout that fits; 0 for the least peak
	Seed     uint64         // of what is random
	Workers  int            // goroutines; 0 for as many as there are cores
	Progress func(Progress) // nil, or told of every better layout and bound, by one goroutine at a time
}

// NumWorkers returns how many goroutines to use.
func (o Options) NumWorkers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Progress is how far a search has come.
type Progress struct {
	Peak   int64 // bytes, of the best layout so far
	Bound  int64 // bytes
	Method string
}

// Solver finds a layout. Solve must not change the problem, must be safe for concurrent use, and must return soon
// after ctx is done, with the best layout found until then. When there is none, it returns the error of a ctx that was cancelled;
// after a deadline it takes the layout that is found the fastest, late. A capacity that is proven to be too small shows as a
// layout whose bound is above it; one that no layout was found for, as a peak above it.
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
