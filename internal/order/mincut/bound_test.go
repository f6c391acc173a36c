package mincut

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
)

// TestBound holds the bound of each operator below what all orders of small problems take while it runs.
func TestBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tight := 0
	const problems = 1500
	for i := range problems {
		p := ordertest.Random(rng, 1+rng.IntN(8))
		l := order.Link(p)
		c := NewCutter(l)
		var bound int64
		for op := range int32(p.Ops()) {
			bound = max(bound, c.Bound(op))
		}
		least := ordertest.Least(l)
		if bound > least {
			t.Errorf("problem %d: bound %d, but an order takes %d: %+v", i, bound, least, p)
		}
		if bound == least {
			tight++
		}
	}
	if t.Logf("tight in %d of %d", tight, problems); tight < problems/2 {
		t.Errorf("the bound is the least in only %d of %d problems", tight, problems)
	}
}

// TestSet runs the set of each operator first: exactly its bound is in memory then.
func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		p := ordertest.Random(rng, 12)
		for j := range p.Tensors {
			p.Tensors[j].Over = nil
		}
		l := order.Link(p)
		c := NewCutter(l)
		for op := range int32(12) {
			set := c.Set(op)
			made := append(slices.Clone(set), op)
			for other := range int32(12) {
				if other != op && !slices.Contains(set, other) {
					made = append(made, other)
				}
			}
			if err := l.Check(made); err != nil {
				t.Fatalf("problem %d, operator %d, set %v: %v", i, op, set, err)
			}
			if got := l.Loads(made)[len(set)]; got != c.Bound(op) {
				t.Errorf("problem %d: operator %d takes %d behind its set, bound %d", i, op, got, c.Bound(op))
			}
		}
	}
}
