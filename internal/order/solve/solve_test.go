package solve

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
	"gm/internal/order/papers"
)

// TestOrder holds bound <= least <= found on small problems, with the least found by trying all orders. Small problems are solved exactly.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		p := ordertest.Random(rng, rng.IntN(10))
		l := order.Link(p)
		least := max(ordertest.Least(l), 0)
		for _, m := range Methods() {
			r, err := m.Find(context.Background(), l, Options{Rounds: 2, States: 1 << 16, Nodes: 20})
			if err != nil {
				t.Fatalf("problem %d, %s: %v", i, m.Name, err)
			}
			if err := l.Check(r.Order); err != nil {
				t.Fatalf("problem %d, %s: %v", i, m.Name, err)
			}
			peak, _ := order.Peak(l.Loads(r.Order))
			if peak != r.Peak || r.Bound > least || least > peak {
				t.Errorf("problem %d, %s: bound %d, least %d, peak %d, said to be %d", i, m.Name, r.Bound, least, peak, r.Peak)
			}
			if exact := m.Name == "auto" || m.Name == "model"; exact && !r.Optimal() {
				t.Errorf("problem %d, %s: peak %d and bound %d of a small problem", i, m.Name, r.Peak, r.Bound)
			}
		}
	}
}

// TestBranch holds the bound of branch and bound below the least on small problems, and wants it to be better than that of single operators
// in some.
func TestBranch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	better := 0
	for i := range 1500 {
		l := order.Link(ordertest.Random(rng, 2+rng.IntN(7)))
		s := newSearch(l, Options{Nodes: 30})
		s.best.Order = order.Program(l.Problem.Ops())
		s.best.Peak, _ = order.Peak(l.Loads(s.best.Order))
		s.raise(context.Background())
		single := s.best.Bound
		s.branch(context.Background())
		least := ordertest.Least(l)
		if s.best.Bound > least {
			t.Errorf("problem %d: bound %d, least %d: %+v", i, s.best.Bound, least, l.Problem)
		}
		if s.best.Bound > single {
			better++
		}
	}
	if t.Logf("better in %d", better); better < 20 {
		t.Errorf("better than the bounds of single operators in only %d", better)
	}
}

// TestLarger has auto no worse than any other method, the same for the same seed, and its bound below all.
func TestLarger(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 5 {
		l := order.Link(ordertest.Random(rng, 150))
		options := Options{Rounds: 2, States: 1000, Nodes: 5, Seed: 7}
		best := Order(context.Background(), l, options)
		if again := Order(context.Background(), l, options); !slices.Equal(again.Order, best.Order) {
			t.Errorf("problem %d: another order with the same seed", i)
		}
		for _, m := range Methods() {
			r, err := m.Find(context.Background(), l, options)
			if errors.Is(err, papers.ErrLarge) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Peak < best.Peak && m.Name != "roam" || r.Peak < best.Bound {
				t.Errorf("problem %d: %s has a peak of %d, auto one of %d and a bound of %d", i, m.Name, r.Peak, best.Peak, best.Bound)
			}
		}
	}
}

// TestEnded returns what there is when the context has ended.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l := order.Link(ordertest.Random(rand.New(rand.NewPCG(5, 6)), 200))
	r := Order(ctx, l, Options{Rounds: 100, States: 1 << 20})
	if err := l.Check(r.Order); err != nil || r.Rounds > 0 {
		t.Errorf("%v, %d rounds", err, r.Rounds)
	}
}

func TestLookup(t *testing.T) {
	for _, m := range Methods() {
		if got, err := Lookup(m.Name); err != nil || got.Name != m.Name {
			t.Errorf("%s: %v, %v", m.Name, got.Name, err)
		}
	}
	if _, err := Lookup("x"); err == nil || err.Error() != `unknown solver "x", expected one of auto, program, eager-free, lpmf, model, roam` {
		t.Error(err)
	}
}
