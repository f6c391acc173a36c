package bilevel_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/solvers"
)

// both returns the solver with the default solver on both levels.
func both() bilevel.Solver { return bilevel.Solver{Parts: solvers.Auto(), Whole: solvers.Auto()} }

// repetitive returns a problem with repeated parts, some adjacent, some apart, and buffers between them that live
// longer.
func repetitive(rng *rand.Rand) *dsa.Problem {
	p := &dsa.Problem{Align: []int64{1, 512}[rng.IntN(2)]}
	now := int64(0)
	kinds := make([]*dsa.Problem, 1+rng.IntN(4))
	for i := range kinds {
		kinds[i] = dsatest.Random(rng, 1+rng.IntN(30), p.Align)
	}
	for range 1 + rng.IntN(12) {
		kind := kinds[rng.IntN(len(kinds))]
		span := slices.Max(kind.End) + 1
		for range 1 + rng.IntN(5) {
			for i := range kind.Size {
				dsatest.Add(p, now+kind.Start[i], now+kind.End[i], kind.Size[i])
			}
			if rng.IntN(3) > 0 {
				dsatest.Add(p, now+rng.Int64N(span), now+rng.Int64N(8*span)+span, 4096)
			}
			now += span
		}
		dsatest.Add(p, now, now+rng.Int64N(1000), rng.Int64N(1<<16))
	}
	return p
}

func TestBilevel(t *testing.T) {
	solver := both()
	folded := 0
	for seed := range uint64(300) {
		p := repetitive(rand.New(rand.NewPCG(seed, 6)))
		l, err := solver.SolveRepeats(t.Context(), p, dsa.Options{})
		if errors.Is(err, bilevel.ErrNoRepeats) {
			continue
		}
		if err == nil {
			err = dsa.Check(p, l)
		}
		if err != nil || l.Bound != dsatest.Load(p) || l.Method != "bilevel" {
			t.Fatalf("seed %d: bound %d, expected %d, by %s: %v", seed, l.Bound, dsatest.Load(p), l.Method, err)
		}
		if float64(l.Peak) > 2*float64(l.Bound) {
			t.Errorf("seed %d: peak %d, bound %d", seed, l.Peak, l.Bound)
		}
		folded++
	}
	if folded < 150 {
		t.Errorf("%d of 300 problems had repeated parts", folded)
	}
}

// TestOneAddressForAll checks that a repeated buffer has the same place in its box in every occurrence.
func TestOneAddressForAll(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		kind, p := dsatest.Random(rng, 40, 1), &dsa.Problem{Align: 1}
		dsatest.Add(p, 200_000, 200_001, 1<<40) // no box is more than that
		const layers = 9
		for layer := range int64(layers) {
			dsatest.Add(p, 2000*layer, 100_000, 500)
			for i := range kind.Size {
				dsatest.Add(p, 2000*layer+kind.Start[i], 2000*layer+kind.End[i], kind.Size[i])
			}
		}
		l, err := both().Solve(t.Context(), p, dsa.Options{})
		if err != nil || dsa.Check(p, l) != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, dsa.Check(p, l))
		}
		for class, boxes := range bilevel.Boxes(p, false) {
			for _, buffers := range boxes {
				for k := range buffers {
					if l.Offsets[buffers[k]]-l.Offsets[buffers[0]] != l.Offsets[boxes[0][k]]-l.Offsets[boxes[0][0]] {
						t.Fatalf("seed %d: two boxes of class %d differ", seed, class)
					}
				}
			}
		}
	}
}

// TestSlack has iterations that keep some memory until the greatest load of the next: without slack no box is possible.
func TestSlack(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for iteration := range int64(10) {
		for i := range int64(50) {
			dsatest.Add(p, 100*iteration+i, 100*iteration+100-i, 20)
		}
		dsatest.Add(p, 100*iteration+98, 100*iteration+102, 5)
	}
	strict := both()
	if _, err := strict.SolveRepeats(t.Context(), p, dsa.Options{}); !errors.Is(err, bilevel.ErrNoRepeats) {
		t.Errorf("without slack: error %v", err)
	}
	strict.Slack = 0.01
	l, err := strict.SolveRepeats(t.Context(), p, dsa.Options{})
	if err != nil || dsa.Check(p, l) != nil || l.Peak <= l.Bound || float64(l.Peak) > 1.01*float64(l.Bound) {
		t.Errorf("peak %d, bound %d: %v, %v", l.Peak, l.Bound, err, dsa.Check(p, l))
	}
}

func TestBilevelWithoutRepeats(t *testing.T) {
	p := dsatest.Random(rand.New(rand.NewPCG(1, 8)), 500, 1)
	fixed := &dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1}, Align: 1, Fixed: []int64{0}}
	for _, p := range []*dsa.Problem{{Align: 1}, p, fixed} {
		if _, err := both().SolveRepeats(t.Context(), p, dsa.Options{}); !errors.Is(err, bilevel.ErrNoRepeats) {
			t.Errorf("error %v", err)
		}
		if _, err := bilevel.FoldRepeats(t.Context(), p, both()); !errors.Is(err, bilevel.ErrNoRepeats) {
			t.Errorf("error %v", err)
		}
	}
	if l, err := both().Solve(t.Context(), p, dsa.Options{}); err != nil || dsa.Check(p, l) != nil {
		t.Errorf("solved as a whole: %v, %v", err, dsa.Check(p, l))
	}
	if _, err := both().Solve(t.Context(), &dsa.Problem{}, dsa.Options{}); !errors.Is(err, dsa.ErrInvalid) {
		t.Errorf("invalid: error %v", err)
	}
}

func TestBilevelIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(10) {
		p := repetitive(rand.New(rand.NewPCG(seed, 9)))
		var first dsa.Layout
		for _, cores := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(cores)
			l, err := both().Solve(t.Context(), p, dsa.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if cores == 1 {
				first = l
			} else if !slices.Equal(l.Offsets, first.Offsets) {
				t.Fatalf("seed %d: another layout on %d cores", seed, cores)
			}
		}
	}
}

// slow ends only when ctx does.
type slow struct{}

func (slow) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	<-ctx.Done()
	return dsa.Layout{}, ctx.Err()
}

// TestBilevelOutOfTime has a first level that does not finish in time, so that nothing is folded.
func TestBilevelOutOfTime(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for layer := range int64(20) {
		for i := range int64(20) {
			dsatest.Add(p, 100*layer+i, 100*layer+i+30, 5+i)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	skyline, err := solvers.Lookup("skyline-A")
	if err != nil {
		t.Fatal(err)
	}
	l, err := bilevel.Solver{Parts: slow{}, Whole: skyline}.Solve(ctx, p, dsa.Options{})
	if err != nil || dsa.Check(p, l) != nil {
		t.Fatalf("%v, %v", err, dsa.Check(p, l))
	}
	cancel()
	if _, err := both().Solve(ctx, p, dsa.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
