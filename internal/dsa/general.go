package dsa

import "context"

// generalSolver takes any problem: it tries orders, proves small ones by pairs, and anneals what is left.
type generalSolver struct{}

// Solve implements [Solver].
func (generalSolver) Solve(ctx context.Context, p *Problem, o Options) (Layout, error) {
	s, err := newSearch(ctx, p, o)
	if err != nil {
		return Layout{}, err
	}
	starts := s.tryOrders()
	s.decidePairs(pairWork / 8)
	if len(s.m.rects) <= fewRects {
		s.anneal(starts, s.chainWork()/8)
		s.decidePairs(s.until(pairWork))
	}
	s.anneal(starts, s.until(s.chainWork()))
	return s.layout()
}

// fewRects is up to how many rectangles an exhaustive search is more promising than a random one.
const fewRects = 64
