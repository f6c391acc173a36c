package dsa

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// feature is something that a problem may have.
type feature int

const (
	withAligns feature = 1 << iota
	withFixed
	withTies
	withPeriod
	withAll = withAligns | withFixed | withTies | withPeriod
)

// involved returns a random problem of up to n buffers with the given features.
func involved(rng *rand.Rand, n int, with feature, sizes int64) *Problem {
	for {
		p := &Problem{Align: []int64{1, 2, 8}[rng.IntN(3)]}
		horizon := int64(2 + rng.IntN(2*n+1))
		for range 1 + rng.IntN(n) {
			start := rng.Int64N(3*horizon) - horizon
			p.add(start, start+rng.Int64N(1+min(horizon, 1<<rng.IntN(12))), p.Align*rng.Int64N(1+sizes))
		}
		if with&withPeriod != 0 {
			p.Period = horizon
		}
		if with&withAligns != 0 {
			p.Aligns = make([]int64, p.Len())
			for i := range p.Aligns {
				p.Aligns[i] = []int64{0, 1, 2, 4, 12, 16}[rng.IntN(6)]
			}
		}
		if with&withTies != 0 {
			for range 1 + rng.IntN(p.Len()) {
				a, b := rng.Int32N(int32(p.Len())), rng.Int32N(int32(p.Len()))
				p.Ties = append(p.Ties, Tie{a, b, p.Align * []int64{0, 0, p.Size[a] / p.Align, rng.Int64N(9) - 4}[rng.IntN(4)]})
			}
		}
		if with&withFixed != 0 {
			p.Fixed = make([]int64, p.Len())
			for i := range p.Fixed {
				if p.Fixed[i] = Free; rng.IntN(4) == 0 {
					p.Fixed[i] = p.Align * rng.Int64N(1+3*sizes)
				}
			}
		}
		if p.Validate() == nil {
			return p
		}
	}
}

// crowded returns a problem in circular time with n buffers of much the same size and life, which leaves any layout gaps.
func crowded(rng *rand.Rand, n int) *Problem {
	p := &Problem{Align: 256, Aligns: make([]int64, n), Period: 60}
	for i := range p.Aligns {
		start := rng.Int64N(p.Period)
		p.add(start, start+5+rng.Int64N(20), 256*(20+rng.Int64N(60)))
		p.Aligns[i] = 512 << rng.IntN(4)
	}
	return p
}

// generalSolvers take any problem.
func generalSolvers() map[string]Solver {
	return map[string]Solver{"general": generalSolver{}, "anneal": anneal{}, "pairs": pairs{}}
}

func TestGeneralKnownOptima(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Problem
		peak int64
	}{
		{"none", Problem{Align: 512, Period: 7}, 0},
		{"empty and fixed", Problem{
			Align: 1, Start: []int64{0, 0}, End: []int64{0, 5}, Size: []int64{9, 0}, Fixed: []int64{3, 100},
		}, 0},
		{"one that is always there", Problem{
			Align: 1, Start: []int64{3, 3}, End: []int64{13, 5}, Size: []int64{9, 1}, Period: 10,
		}, 10},
		{"around the end", Problem{
			Align: 1, Start: []int64{8, 1, 4}, End: []int64{12, 3, 6}, Size: []int64{5, 6, 7}, Period: 10,
		}, 11},
		{"below and above a fixed one", Problem{
			Align: 1, Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{5, 4, 5}, Fixed: []int64{Free, 4, Free},
		}, 18},
		{"in place", Problem{
			Align: 4, Start: []int64{0, 2}, End: []int64{3, 5}, Size: []int64{8, 5}, Ties: []Tie{{0, 1, 0}},
		}, 8},
		{"neighbours with another in between", Problem{
			Align: 1, Start: []int64{0, 1, 0}, End: []int64{1, 2, 2}, Size: []int64{4, 4, 3}, Ties: []Tie{{0, 1, 4}},
		}, 11},
		{"aligned", Problem{
			Align: 1, Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{5, 5, 2}, Aligns: []int64{8, 8, 1},
		}, 13},
	} {
		for name, solver := range generalSolvers() {
			l, err := solver.Solve(t.Context(), &c.p, Options{})
			if err != nil || Check(&c.p, l) != nil || l.Peak != c.peak || name != "anneal" && !l.Optimal() {
				t.Errorf("%s, %s: peak %d of bound %d, expected %d: %v, %v", c.name, name, l.Peak, l.Bound, c.peak, err, Check(&c.p, l))
			}
		}
	}
}

func TestGeneralSolversAreValid(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		with := feature(seed) % (withAll + 1)
		p := involved(rng, 1+rng.IntN(60), with, 50)
		s, err := newSearch(t.Context(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		starts := s.tryOrders()
		for _, start := range starts {
			l := Layout{Offsets: s.m.offsets(start.bases), Peak: start.peak * p.Align, Bound: s.bound * p.Align}
			if err := Check(p, l); err != nil {
				t.Fatalf("seed %d, features %b: %v", seed, with, err)
			}
		}
		s.decidePairs(1 << 18)
		if l, err := s.layout(); err != nil || Check(p, l) != nil {
			t.Fatalf("seed %d, features %b: %v, %v", seed, with, err, Check(p, l))
		}
	}
}

func TestChainIsAPass(t *testing.T) {
	for seed := range uint64(101) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(80)
		if seed == 100 {
			n = 10_000 // with shelves of several levels
		}
		p := involved(rng, n, feature(seed)%(withAll+1), 50)
		s, err := newSearch(t.Context(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		starts := s.tryOrders()
		c := newChain(s.m, starts[0], s.bound)
		for range 50 {
			if len(c.order) < 2 {
				break
			}
			limit := float64(c.peak) * (0.9 + 0.2*rng.Float64())
			c.try(rng.IntN(len(c.order)), rng.IntN(len(c.order)), func(peak, _ int64) float64 { return float64(peak) }, limit)
			again := newPass(s.m, c.order)
			again.run(s.m, func(int64) bool { return false })
			if !slices.Equal(again.base, c.base) || again.peak != c.peak {
				t.Fatalf("seed %d: bases %v with a peak of %d, expected %v with %d", seed, c.base, c.peak, again.base, again.peak)
			}
		}
	}
}

func TestGeneralCapacity(t *testing.T) {
	p := crowded(rand.New(rand.NewPCG(3, 24)), 24)
	best, err := generalSolver{}.Solve(t.Context(), p, Options{})
	if err != nil || !best.Optimal() {
		t.Fatalf("peak %d, bound %d: %v", best.Peak, best.Bound, err)
	}
	for _, capacity := range []int64{best.Peak - 1, best.Peak, best.Peak + best.Peak/50, 2 * best.Peak} {
		l, err := generalSolver{}.Solve(t.Context(), p, Options{Capacity: capacity})
		if err != nil || Check(p, l) != nil || (l.Peak > capacity) != (capacity < best.Peak) || (l.Bound > capacity) != (capacity < best.Peak) {
			t.Errorf("capacity %d, least peak %d: peak %d, bound %d: %v, %v", capacity, best.Peak, l.Peak, l.Bound, err, Check(p, l))
		}
	}
}

func TestSameSeedSameLayout(t *testing.T) {
	for seed := range uint64(3) {
		p := crowded(rand.New(rand.NewPCG(seed, 3)), 100)
		var first Layout
		for workers := 1; workers <= 3; workers++ {
			s, _ := newSearch(t.Context(), p, Options{Seed: seed, Workers: workers})
			s.anneal(s.tryOrders(), 1<<16)
			l, err := s.layout()
			if err != nil || Check(p, l) != nil {
				t.Fatal(err, Check(p, l))
			}
			if workers == 1 {
				first = l
			} else if l.Method != first.Method || !slices.Equal(l.Offsets, first.Offsets) {
				t.Errorf("seed %d: peak %d by %s on %d workers, %d by %s on one", seed, l.Peak, l.Method, workers, first.Peak, first.Method)
			}
		}
	}
}

func TestGeneralCancelled(t *testing.T) {
	p := crowded(rand.New(rand.NewPCG(5, 5)), 1000)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (generalSolver{}).Solve(done, p, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("already cancelled: error %v", err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	peak := int64(math.MaxInt64)
	o := Options{Progress: func(pr Progress) {
		if pr.Peak > peak || pr.Bound > pr.Peak {
			t.Errorf("a peak of %d after one of %d, with a bound of %d", pr.Peak, peak, pr.Bound)
		}
		peak = pr.Peak
	}}
	l, err := generalSolver{}.Solve(ctx, p, o)
	if err != nil || Check(p, l) != nil || l.Peak != peak {
		t.Errorf("peak %d, last told of %d: %v, %v", l.Peak, peak, err, Check(p, l))
	}
	if took := time.Since(begin); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("returned after %v, expected it to be cancelled after 300 ms", took)
	}
}
