package general

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/anneal"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/pairs"
)

// generalSolvers returns the solvers that take problems of any kind.
func generalSolvers() map[string]dsa.Solver {
	return map[string]dsa.Solver{"general": Solver{}, "anneal": anneal.Solver{}, "pairs": pairs.Solver{}}
}

func TestGeneralKnownOptima(t *testing.T) {
	for _, c := range []struct {
		name string
		p    dsa.Problem
		peak int64
	}{
		{"none", dsa.Problem{Align: 512, Period: 7}, 0},
		{"empty and fixed", dsa.Problem{
			Align: 1, Start: []int64{0, 0}, End: []int64{0, 5}, Size: []int64{9, 0}, Fixed: []int64{3, 100},
		}, 0},
		{"one that is always there", dsa.Problem{
			Align: 1, Start: []int64{3, 3}, End: []int64{13, 5}, Size: []int64{9, 1}, Period: 10,
		}, 10},
		{"around the end", dsa.Problem{
			Align: 1, Start: []int64{8, 1, 4}, End: []int64{12, 3, 6}, Size: []int64{5, 6, 7}, Period: 10,
		}, 11},
		{"below and above a fixed one", dsa.Problem{
			Align: 1, Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{5, 4, 5}, Fixed: []int64{dsa.Free, 4, dsa.Free},
		}, 18},
		{"in place", dsa.Problem{
			Align: 4, Start: []int64{0, 2}, End: []int64{3, 5}, Size: []int64{8, 5}, Ties: []dsa.Tie{{A: 0, B: 1}},
		}, 8},
		{"neighbours with another in between", dsa.Problem{
			Align: 1, Start: []int64{0, 1, 0}, End: []int64{1, 2, 2}, Size: []int64{4, 4, 3}, Ties: []dsa.Tie{{A: 0, B: 1, Delta: 4}},
		}, 11},
		{"aligned", dsa.Problem{
			Align: 1, Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{5, 5, 2}, Aligns: []int64{8, 8, 1},
		}, 13},
	} {
		for name, solver := range generalSolvers() {
			l, err := solver.Solve(t.Context(), &c.p, dsa.Options{})
			if err != nil || dsa.Check(&c.p, l) != nil || l.Peak != c.peak || name != "anneal" && !l.Optimal() {
				t.Errorf("%s, %s: peak %d of bound %d, expected %d: %v, %v", c.name, name, l.Peak, l.Bound, c.peak, err, dsa.Check(&c.p, l))
			}
		}
	}
}

func TestGeneralSolversAreValid(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		with := dsatest.Feature(seed) % (dsatest.WithAll + 1)
		p := dsatest.Involved(rng, 1+rng.IntN(60), with, 50)
		s, err := orders.New(t.Context(), p, dsa.Options{})
		if err != nil {
			t.Fatal(err)
		}
		starts := s.Try()
		for _, start := range starts {
			l := dsa.Layout{Offsets: s.Model.Offsets(start.Bases), Peak: start.Peak * p.Align, Bound: s.Bound * p.Align}
			if err := dsa.Check(p, l); err != nil {
				t.Fatalf("seed %d, features %b: %v", seed, with, err)
			}
		}
		pairs.Improve(s, 1<<18)
		if l, err := s.Layout(); err != nil || dsa.Check(p, l) != nil {
			t.Fatalf("seed %d, features %b: %v, %v", seed, with, err, dsa.Check(p, l))
		}
	}
}

func TestGeneralCapacity(t *testing.T) {
	p := dsatest.Crowded(rand.New(rand.NewPCG(3, 24)), 24)
	best, err := Solver{}.Solve(t.Context(), p, dsa.Options{})
	if err != nil || !best.Optimal() {
		t.Fatalf("peak %d, bound %d: %v", best.Peak, best.Bound, err)
	}
	for _, capacity := range []int64{best.Peak - 1, best.Peak, best.Peak + best.Peak/50, 2 * best.Peak} {
		l, err := Solver{}.Solve(t.Context(), p, dsa.Options{Capacity: capacity})
		if err != nil || dsa.Check(p, l) != nil || (l.Peak > capacity) != (capacity < best.Peak) || (l.Bound > capacity) != (capacity < best.Peak) {
			t.Errorf("capacity %d, least peak %d: peak %d, bound %d: %v, %v", capacity, best.Peak, l.Peak, l.Bound, err, dsa.Check(p, l))
		}
	}
}

func TestGeneralCancelled(t *testing.T) {
	p := dsatest.Crowded(rand.New(rand.NewPCG(5, 5)), 1000)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Solver{}).Solve(done, p, dsa.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("already cancelled: error %v", err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	peak := int64(math.MaxInt64)
	o := dsa.Options{Progress: func(pr dsa.Progress) {
		if pr.Peak > peak || pr.Bound > pr.Peak {
			t.Errorf("a peak of %d after one of %d, with a bound of %d", pr.Peak, peak, pr.Bound)
		}
		peak = pr.Peak
	}}
	l, err := Solver{}.Solve(ctx, p, o)
	if err != nil || dsa.Check(p, l) != nil || l.Peak != peak {
		t.Errorf("peak %d, last reported %d: %v, %v", l.Peak, peak, err, dsa.Check(p, l))
	}
	if took := time.Since(begin); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("returned after %v, expected it to be cancelled after 300 ms", took)
	}
}
