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

// ErrNoRepeats says that a problem has no repeated parts to be laid out once for all.
var ErrNoRepeats = errors.New("no repeated parts")

// Solver lays out what is repeated once: the two levels of MEMO (arXiv 2407.12117), whose layers of transformers it
// finds by itself, as it does microbatches and iterations. The buffers that live and die within a part, a layer's forward
// for example, are laid out on their own, the first level; on the second, one box for each occurrence stands for them among
// all others. Both levels may have repeated parts again. What a box holds has the same place in it in every occurrence.
//
// As a box takes its space for all of its time, more may live at one time than in the problem. Where that would be more than
// the greatest load and the slack, the box is taken apart again. Without slack the bound of the second level is that of
// the problem; with some, large boxes remain, such as those of iterations that are not quite apart.
type Solver struct {
	Parts dsa.Solver // of what repeats
	Whole dsa.Solver // of the second level
	Slack float64    // of the greatest load
}

// levels bounds how deep repeated parts are looked for in repeated parts.
const levels = 3

// Solve implements [dsa.Solver]. A problem without repeated parts is solved as a whole.
func (b Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	layout, err := b.SolveRepeats(ctx, p, o)
	if errors.Is(err, ErrNoRepeats) {
		return b.Whole.Solve(ctx, p, o)
	}
	return layout, err
}

// SolveRepeats is Solve, but fails with [ErrNoRepeats] when there is nothing to gain, as for a problem that is not plain.
func (b Solver) SolveRepeats(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	if err := p.Validate(); err != nil {
		return dsa.Layout{}, err
	}
	if !p.Plain() {
		return dsa.Layout{}, fmt.Errorf("%w: the problem is not plain", ErrNoRepeats)
	}
	e := newEvents(p)
	layout, err := b.solve(ctx, p, e, bounded(o, e.bound), levels)
	layout.Bound, layout.Method = e.bound, "bilevel"
	return layout, err
}

// bounded returns options whose progress tells a bound of its own, that of the problem which the user knows.
func bounded(o dsa.Options, bound int64) dsa.Options {
	if tell := o.Progress; tell != nil {
		o.Progress = func(p dsa.Progress) {
			p.Bound = bound
			tell(p)
		}
	}
	return o
}

// solve lays a problem out in two levels, and in more where what remains is still large.
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
	f := foldParts(p, e)
	if err := b.solveClasses(ctx, f, o, depth); err != nil {
		return nil, nil, err
	}
	second := f.second()
	if f.takeApart(second, e.bound+int64(b.Slack*float64(e.bound))) {
		second = f.second()
	}
	if len(f.boxes) == 0 {
		return nil, nil, ErrNoRepeats
	}
	return f, second, nil
}

// solveClasses lays out a box of each class. They have half of the time; those that it is too short for stay unfolded.
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

// Folding is how much smaller a problem gets by laying out its repeated parts once.
type Folding struct {
	Parts       int // different ones
	Occurrences int // of all parts
	Boxes       int // one or more in an occurrence
	Buffers     int // in the boxes
	First       int // buffers to lay out on the first level, of all parts together
	Second      int // buffers to lay out on the second level, a box being one
}

// FoldRepeats says what repeated parts there are in a plain problem, or fails with [ErrNoRepeats]. The solver lays the parts
// out: the boxes that would cost memory are not counted.
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
