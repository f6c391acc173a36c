// Package bilevel lays out repeated parts of a problem once.
//
//   - bilevel.go: the solver, and how much smaller a problem becomes
//   - events.go: births and deaths as a sequence, in which package repeats finds parts
//   - fold.go: repeated parts as boxes
package bilevel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gm/internal/dsa"
)

// ErrNoRepeats means that a problem has no repeated parts that are worth laying out once.
var ErrNoRepeats = errors.New("no repeated parts")

// Solver lays out repeated parts once, in two levels as MEMO does (arXiv 2407.12117). It finds the parts by itself: layers,
// microbatches, iterations. On the first level, the buffers that are born and die within a part, such as the forward pass of a layer, are
// laid out alone. On the second level a box replaces them in each occurrence, among all other buffers. Both levels
// may have repeated parts again. Within its box, a buffer has the same offset in every occurrence.
//
// A box occupies its space all the time, so the load of the second level may exceed that of the problem. Where it would exceed
// the greatest load plus the slack, the box is taken apart. Without slack the bound of the second level is the bound of
// the problem; with slack, large boxes remain, such as those of iterations that overlap slightly.
type Solver struct {
	Parts dsa.Solver // for the repeated parts
	Whole dsa.Solver // for the second level
	Slack float64    // as a fraction of the greatest load

	// Published lays out as the paper does (section 4.2): one box for all that is born and dies within an occurrence, from the first birth to
	// the last death, whatever it adds to the load; and no parts within parts.
	Published bool
}

// name returns the solver's name in layouts.
func (b Solver) name() string {
	if b.Published {
		return "memo"
	}
	return "bilevel"
}

// depth returns on how many levels repeated parts are looked for.
func (b Solver) depth() int {
	if b.Published {
		return 1
	}
	return levels
}

// levels is how deep repeated parts are looked for within repeated parts.
const levels = 3

// Solve implements [dsa.Solver]. A problem without repeated parts is solved as a whole.
func (b Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	layout, err := b.SolveRepeats(ctx, p, o)
	if errors.Is(err, ErrNoRepeats) {
		return b.Whole.Solve(ctx, p, o)
	}
	return layout, err
}

// SolveRepeats is like Solve, but fails with [ErrNoRepeats] when there is nothing to gain, or the problem is not plain.
func (b Solver) SolveRepeats(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	if err := p.Validate(); err != nil {
		return dsa.Layout{}, err
	}
	if !p.Plain() {
		return dsa.Layout{}, fmt.Errorf("%w: the problem is not plain", ErrNoRepeats)
	}
	e := newEvents(p)
	layout, err := b.solve(ctx, p, e, bounded(o, e.bound), b.depth())
	layout.Bound, layout.Method = e.bound, b.name()
	return layout, err
}

// bounded returns options whose Progress reports the given bound, that of the user's problem.
func bounded(o dsa.Options, bound int64) dsa.Options {
	if tell := o.Progress; tell != nil {
		o.Progress = func(p dsa.Progress) {
			p.Bound = bound
			tell(p)
		}
	}
	return o
}

// solve lays a problem out in two levels, or in more while a level is large.
func (b Solver) solve(ctx context.Context, p *dsa.Problem, e *events, o dsa.Options, depth int) (dsa.Layout, error) {
	f, second, err := b.fold(ctx, p, e, o, depth)
	if err != nil {
		return dsa.Layout{}, err
	}
	layout, err := b.nested(ctx, second, o, depth, b.Whole)
	if err != nil {
		return dsa.Layout{}, err
	}
	layout.Offsets = f.unfold(layout.Offsets)
	return layout, nil
}

// fold solves the first level and returns the second.
func (b Solver) fold(ctx context.Context, p *dsa.Problem, e *events, o dsa.Options, depth int) (*fold, *dsa.Problem, error) {
	f := foldParts(p, e, b.Published)
	if err := b.solveClasses(ctx, f, o, depth); err != nil {
		return nil, nil, err
	}
	second := f.second()
	if !b.Published && f.takeApart(second, e.bound+int64(b.Slack*float64(e.bound))) {
		second = f.second()
	}
	if len(f.boxes) == 0 {
		return nil, nil, ErrNoRepeats
	}
	return f, second, nil
}

// solveClasses lays out a box of each class, within half of the time. Classes for which the time is too short are not folded.
func (b Solver) solveClasses(ctx context.Context, f *fold, o dsa.Options, depth int) error {
	o.Capacity, o.Progress = 0, nil
	inner, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		inner, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	defer cancel()
	for i := range f.classes {
		c := &f.classes[i]
		if c.boxes < 2 {
			continue
		}
		layout, err := b.nested(inner, c.problem(f.align), o, depth, b.Parts)
		switch {
		case err == nil:
			c.offsets, c.height = layout.Offsets, layout.Peak
		case ctx.Err() != nil || inner.Err() == nil:
			return err
		}
	}
	return nil
}

// nested lays out a level: in two levels of its own when it is large and has repeated parts, else flat.
func (b Solver) nested(ctx context.Context, p *dsa.Problem, o dsa.Options, depth int, flat dsa.Solver) (dsa.Layout, error) {
	const large = 1 << 15
	if depth > 1 && p.Len() > large {
		layout, err := b.solve(ctx, p, newEvents(p), o, depth-1)
		if !errors.Is(err, ErrNoRepeats) {
			return layout, err
		}
	}
	return flat.Solve(ctx, p, o)
}

// Folding is how much smaller a problem becomes when its repeated parts are laid out once.
type Folding struct {
	Parts       int // different parts
	Occurrences int // of all parts
	Boxes       int // one or more per occurrence
	Buffers     int // in all boxes
	First       int // buffers to lay out on the first level, for all parts
	Second      int // buffers to lay out on the second level, where a box counts as one
}

// FoldRepeats counts the repeated parts of a plain problem, or fails with [ErrNoRepeats]. It lays the parts out with the given solver,
// because boxes that would cost memory are not counted.
func FoldRepeats(ctx context.Context, p *dsa.Problem, parts dsa.Solver) (Folding, error) {
	if err := p.Validate(); err != nil {
		return Folding{}, err
	}
	if !p.Plain() {
		return Folding{}, fmt.Errorf("%w: the problem is not plain", ErrNoRepeats)
	}
	f, second, err := Solver{Parts: parts}.fold(ctx, p, newEvents(p), dsa.Options{}, 1)
	if err != nil {
		return Folding{}, err
	}
	folding := f.folding()
	folding.Second = second.Len()
	return folding, nil
}
