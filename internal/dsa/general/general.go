// Package general solves a problem of any kind: it tries orders, decides pairs where there are few, and anneals the rest.
package general

import (
	"context"

	"gm/internal/dsa"
	"gm/internal/dsa/anneal"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/pairs"
)

// Solver solves a problem of any kind: it tries orders, decides pairs if there are few, and anneals the rest.
type Solver struct{}

// Solve implements [dsa.Solver].
func (Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	s, err := orders.New(ctx, p, o)
	if err != nil {
		return dsa.Layout{}, err
	}
	starts := s.Try()
	pairs.Improve(s, pairs.Work/8)
	if len(s.Model.Rects) <= fewRects {
		anneal.Improve(s, starts, anneal.Work(s.Model)/8)
		pairs.Improve(s, s.WorkLimit(pairs.Work))
	}
	anneal.Improve(s, starts, s.WorkLimit(anneal.Work(s.Model)))
	return s.Layout()
}

// fewRects is the number of rectangles up to which an exhaustive search is more promising than a random one.
const fewRects = 64
