package solvers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/general"
	"gm/internal/dsa/portfolio"
)

func TestEverySolverIsValid(t *testing.T) {
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := dsatest.Random(rng, 1+rng.IntN(120), []int64{1, 2, 512}[seed%3])
		bound := dsatest.Load(p)
		for _, e := range All() {
			l, err := briefly(t, e.Solver, p)
			if err == nil {
				err = dsa.Check(p, l)
			}
			if err != nil || l.Bound < bound {
				t.Fatalf("seed %d, %s: bound %d, expected %d: %v", seed, e.Name, l.Bound, bound, err)
			}
		}
	}
}

// briefly runs a solver for a short time.
func briefly(t *testing.T, s dsa.Solver, p *dsa.Problem) (dsa.Layout, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	return s.Solve(ctx, p, dsa.Options{})
}

func TestLargerInstances(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, p := range []*dsa.Problem{dsatest.Random(rng, 6000, 1), dsatest.Training(rng, 10, 150)} {
			l, err := briefly(t, Solver(t, "auto"), p)
			if err == nil {
				err = dsa.Check(p, l)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if float64(l.Peak) > 1.05*float64(l.Bound) {
				t.Errorf("seed %d: peak %d is far from the bound %d", seed, l.Peak, l.Bound)
			}
		}
	}
}

func TestKnownOptima(t *testing.T) {
	for _, c := range []struct {
		name    string
		buffers [][3]int64 // start, end, size
		peak    int64
	}{
		{"one after another share", [][3]int64{{0, 1, 5}, {1, 2, 7}, {2, 3, 6}}, 7},
		{"all at once add up", [][3]int64{{0, 3, 5}, {1, 3, 7}, {2, 3, 6}}, 18},
		{"a hole is used again", [][3]int64{{0, 4, 2}, {0, 1, 3}, {0, 4, 2}, {1, 4, 3}}, 7},
		{"the long ones go below", [][3]int64{{0, 1, 4}, {0, 9, 1}, {1, 2, 8}, {2, 3, 8}}, 9},
		{"parts far apart", [][3]int64{{0, 1, 4}, {100, 101, 9}, {-50, -40, 3}}, 9},
		{"a staircase", [][3]int64{{0, 2, 1}, {1, 3, 2}, {2, 4, 1}, {3, 5, 2}}, 3},
	} {
		p := &dsa.Problem{Align: 1}
		for _, b := range c.buffers {
			dsatest.Add(p, b[0], b[1], b[2])
		}
		l, err := Solver(t, "auto").Solve(t.Context(), p, dsa.Options{})
		if err == nil {
			err = dsa.Check(p, l)
		}
		if err != nil || l.Peak != c.peak || !l.Optimal() {
			t.Errorf("%s: peak %d of bound %d, expected %d: %v", c.name, l.Peak, l.Bound, c.peak, err)
		}
	}
}

func TestEqualSizesMeetTheBound(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := dsatest.Random(rng, 200, 512)
		for i := range p.Size {
			p.Size[i] = 700
		}
		for _, name := range []string{"auto", "best-fit", "first-fit"} {
			if l, err := Solver(t, name).Solve(t.Context(), p, dsa.Options{}); err != nil || !l.Optimal() || dsa.Check(p, l) != nil {
				t.Fatalf("seed %d, %s: peak %d of bound %d: %v, %v", seed, name, l.Peak, l.Bound, err, dsa.Check(p, l))
			}
		}
	}
}

func TestDegenerateProblems(t *testing.T) {
	const big = 1 << 47
	for _, c := range []struct {
		name string
		p    dsa.Problem
		peak int64 // -1 when it is invalid
	}{
		{"none", dsa.Problem{Align: 512}, 0},
		{"no life", dsa.Problem{Start: []int64{3, 3}, End: []int64{3, 3}, Size: []int64{9, 9}, Align: 1}, 0},
		{"no life and no size among others", dsa.Problem{Start: []int64{0, 1, 0}, End: []int64{2, 1, 2}, Size: []int64{9, 9, 0}, Align: 1}, 9},
		{"whole address space", dsa.Problem{Start: []int64{0, 0}, End: []int64{1, 1}, Size: []int64{big, big}, Align: 512}, 2 * big},
		{"extremes of time", dsa.Problem{Start: []int64{math.MinInt64, 0}, End: []int64{math.MaxInt64, 1}, Size: []int64{1, 1}, Align: 4}, 8},
		{"greatest size", dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{math.MaxInt64}, Align: 1}, math.MaxInt64},
		{"size that rounds up too far", dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{math.MaxInt64}, Align: 512}, -1},
		{"sum too great", dsa.Problem{Start: []int64{0, 1}, End: []int64{1, 2}, Size: []int64{math.MaxInt64, 1}, Align: 1}, -1},
		{"negative size", dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{-1}, Align: 1}, -1},
		{"backwards", dsa.Problem{Start: []int64{1}, End: []int64{0}, Size: []int64{1}, Align: 1}, -1},
		{"no alignment", dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1}}, -1},
		{"short column", dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1, 2}, Align: 1}, -1},
	} {
		for _, e := range All() {
			l, err := e.Solver.Solve(t.Context(), &c.p, dsa.Options{})
			switch {
			case c.peak < 0:
				if !errors.Is(err, dsa.ErrInvalid) {
					t.Errorf("%s, %s: error %v", c.name, e.Name, err)
				}
			case err != nil || l.Peak != c.peak || !l.Optimal() || dsa.Check(&c.p, l) != nil:
				t.Errorf("%s, %s: peak %d, expected %d: %v, %v", c.name, e.Name, l.Peak, c.peak, err, dsa.Check(&c.p, l))
			}
		}
	}
}

func TestSameLayoutOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := dsatest.Random(rng, 60+int(seed)*900, 1)
		pf := Solver(t, "auto").(portfolio.Solver)
		pf.Rounds, pf.Nodes = 20, 1<<12
		var first dsa.Layout
		for _, cores := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(cores)
			l, err := pf.Solve(t.Context(), p, dsa.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if cores == 1 {
				first = l
			} else if l.Peak != first.Peak || l.Method != first.Method || !slices.Equal(l.Offsets, first.Offsets) {
				t.Fatalf("seed %d: peak %d by %s on %d cores, %d by %s on one", seed, l.Peak, l.Method, cores, first.Peak, first.Method)
			}
		}
	}
}

// countdown is a context that is done after Err was called left times.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancelled(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := dsatest.Random(rand.New(rand.NewPCG(5, 5)), 500, 1)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Solver(t, "auto").Solve(done, p, dsa.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("already cancelled: error %v", err)
	}
	found := 0
	for left := 10; left < 1e5; left *= 2 {
		remaining := left
		l, err := Solver(t, "auto").Solve(countdown{done, &remaining}, p, dsa.Options{})
		if err == nil {
			found++
			err = dsa.Check(p, l)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled after %d looks: %v", left, err)
		}
	}
	if found == 0 {
		t.Error("no layout was returned on time")
	}
}

// TestLate runs solvers after their deadline.
func TestLate(t *testing.T) {
	p := dsatest.Random(rand.New(rand.NewPCG(6, 5)), 3000, 1)
	done, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, e := range All() {
		if l, err := e.Solver.Solve(done, p, dsa.Options{}); err != nil || dsa.Check(p, l) != nil {
			t.Errorf("%s: %v, %v", e.Name, err, dsa.Check(p, l))
		}
	}
	for seed := range uint64(16) {
		p := dsatest.Involved(rand.New(rand.NewPCG(seed, 5)), 4000, dsatest.Feature(seed), 50)
		if l, err := (general.Solver{}).Solve(done, p, dsa.Options{}); err != nil || dsa.Check(p, l) != nil {
			t.Errorf("features %b: %v, %v", seed, err, dsa.Check(p, l))
		}
	}
}

// TestCancelledBetweenComponents cancels as soon as the first component has a layout: the second gets one all the same.
func TestCancelledBetweenComponents(t *testing.T) {
	p := dsatest.Packed(rand.New(rand.NewPCG(8, 8)), 80, 10_000, 300)
	solve := func(left int) (dsa.Layout, error) {
		return Solver(t, "auto").Solve(countdown{t.Context(), &left}, p, dsa.Options{Workers: 1})
	}
	left := 1
	for ; left < 1e4; left++ {
		if _, err := solve(left); err == nil {
			break
		}
	}
	dsatest.Add(p, 100, 101, 1)
	if l, err := solve(left); err != nil || dsa.Check(p, l) != nil {
		t.Errorf("cancelled after %d looks: %v, %v", left, err, dsa.Check(p, l))
	}
}

func TestLookup(t *testing.T) {
	if _, err := Lookup("auto"); err != nil {
		t.Error(err)
	}
	if _, err := Lookup("nothing"); err == nil {
		t.Error("a solver that does not exist was found")
	}
}

func Solver(t testing.TB, name string) dsa.Solver {
	t.Helper()
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestManyComponents has as many components as buffers.
func TestManyComponents(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for i := range int64(200_000) {
		dsatest.Add(p, i, i+1, 1+i%97)
	}
	if l, err := briefly(t, Solver(t, "auto"), p); err != nil || dsa.Check(p, l) != nil || l.Peak != 97 {
		t.Errorf("peak %d: %v, %v", l.Peak, err, dsa.Check(p, l))
	}
}
