package dsa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestEverySolverIsValid(t *testing.T) {
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := random(rng, 1+rng.IntN(120), []int64{1, 2, 512}[seed%3])
		bound := load(p)
		for _, e := range Solvers() {
			l, err := briefly(t, e.Solver, p)
			if err == nil {
				err = Check(p, l)
			}
			if err != nil || l.Bound < bound {
				t.Fatalf("seed %d, %s: bound %d, expected %d: %v", seed, e.Name, l.Bound, bound, err)
			}
		}
	}
}

// briefly gives a solver little time.
func briefly(t *testing.T, s Solver, p *Problem) (Layout, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	return s.Solve(ctx, p, Options{})
}

func TestLargerInstances(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, p := range []*Problem{random(rng, 6000, 1), training(rng, 10, 150)} {
			l, err := briefly(t, solver(t, "auto"), p)
			if err == nil {
				err = Check(p, l)
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
		p := &Problem{Align: 1}
		for _, b := range c.buffers {
			p.add(b[0], b[1], b[2])
		}
		l, err := solver(t, "auto").Solve(t.Context(), p, Options{})
		if err == nil {
			err = Check(p, l)
		}
		if err != nil || l.Peak != c.peak || !l.Optimal() {
			t.Errorf("%s: peak %d of bound %d, expected %d: %v", c.name, l.Peak, l.Bound, c.peak, err)
		}
	}
}

func TestEqualSizesMeetTheBound(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := random(rng, 200, 512)
		for i := range p.Size {
			p.Size[i] = 700
		}
		for _, name := range []string{"auto", "best-fit", "first-fit"} {
			if l, err := solver(t, name).Solve(t.Context(), p, Options{}); err != nil || !l.Optimal() || Check(p, l) != nil {
				t.Fatalf("seed %d, %s: peak %d of bound %d: %v, %v", seed, name, l.Peak, l.Bound, err, Check(p, l))
			}
		}
	}
}

func TestDegenerateProblems(t *testing.T) {
	const big = 1 << 47
	for _, c := range []struct {
		name string
		p    Problem
		peak int64 // -1 when it is invalid
	}{
		{"none", Problem{Align: 512}, 0},
		{"no life", Problem{Start: []int64{3, 3}, End: []int64{3, 3}, Size: []int64{9, 9}, Align: 1}, 0},
		{"no life and no size among others", Problem{Start: []int64{0, 1, 0}, End: []int64{2, 1, 2}, Size: []int64{9, 9, 0}, Align: 1}, 9},
		{"whole address space", Problem{Start: []int64{0, 0}, End: []int64{1, 1}, Size: []int64{big, big}, Align: 512}, 2 * big},
		{"extremes of time", Problem{Start: []int64{math.MinInt64, 0}, End: []int64{math.MaxInt64, 1}, Size: []int64{1, 1}, Align: 4}, 8},
		{"greatest size", Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{math.MaxInt64}, Align: 1}, math.MaxInt64},
		{"size that rounds up too far", Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{math.MaxInt64}, Align: 512}, -1},
		{"sum too great", Problem{Start: []int64{0, 1}, End: []int64{1, 2}, Size: []int64{math.MaxInt64, 1}, Align: 1}, -1},
		{"negative size", Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{-1}, Align: 1}, -1},
		{"backwards", Problem{Start: []int64{1}, End: []int64{0}, Size: []int64{1}, Align: 1}, -1},
		{"no alignment", Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1}}, -1},
		{"short column", Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1, 2}, Align: 1}, -1},
	} {
		for _, e := range Solvers() {
			l, err := e.Solver.Solve(t.Context(), &c.p, Options{})
			switch {
			case c.peak < 0:
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%s, %s: error %v", c.name, e.Name, err)
				}
			case err != nil || l.Peak != c.peak || !l.Optimal() || Check(&c.p, l) != nil:
				t.Errorf("%s, %s: peak %d, expected %d: %v, %v", c.name, e.Name, l.Peak, c.peak, err, Check(&c.p, l))
			}
		}
	}
}

func TestSameLayoutOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := random(rng, 60+int(seed)*900, 1)
		pf := solver(t, "auto").(portfolio)
		pf.rounds, pf.nodes = 20, 1<<12
		var first Layout
		for _, cores := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(cores)
			l, err := pf.Solve(t.Context(), p, Options{})
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

// TestHuntsAreTheSame compares what hunters have done, of which little shows in the layout.
func TestHuntsAreTheSame(t *testing.T) {
	type state struct{ nodes, work, peak, bound int64 }
	for seed := range uint64(6) {
		p := packed(rand.New(rand.NewPCG(seed, 8)), 80, 10_000, 300)
		var first []state
		for _, workers := range []int{1, 2, 5} {
			q := newQuest(t.Context(), solver(t, "exact").(portfolio), p, Options{Workers: workers})
			var states []state
			c := q.parts[0]
			for q.start(c, 0); len(states) < 8 && q.worst() != nil; q.deepen(c) {
				if c.hunt != nil {
					states = append(states, state{c.hunt.nodes, c.hunt.work, c.peak, c.bound})
				}
			}
			if workers == 1 {
				first = states
			} else if !slices.Equal(states, first) {
				t.Fatalf("seed %d, %d workers: %v, expected %v", seed, workers, states, first)
			}
		}
	}
}

// TestManyComponents has as many parts as buffers, and then hard ones whose hunters cannot all be kept.
func TestManyComponents(t *testing.T) {
	p := &Problem{Align: 1}
	for i := range int64(200_000) {
		p.add(i, i+1, 1+i%97)
	}
	if l, err := briefly(t, solver(t, "auto"), p); err != nil || Check(p, l) != nil || l.Peak != 97 {
		t.Errorf("peak %d: %v, %v", l.Peak, err, Check(p, l))
	}
	p = &Problem{Align: 1}
	for k := range int64(mostHunts + 4) {
		part := packed(rand.New(rand.NewPCG(uint64(k), 9)), 80, 10_000, 300)
		for i := range part.Size {
			p.add(100*k+part.Start[i], 100*k+part.End[i], part.Size[i])
		}
	}
	pf := solver(t, "exact").(portfolio)
	pf.nodes = 1 << 15
	l, err := pf.Solve(t.Context(), p, Options{Capacity: 10_000})
	if err != nil || Check(p, l) != nil {
		t.Error(err, Check(p, l))
	}
}

// countdown is a context that is done after Err was asked so many times.
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
	p := random(rand.New(rand.NewPCG(5, 5)), 500, 1)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := solver(t, "auto").Solve(done, p, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("already cancelled: error %v", err)
	}
	found := 0
	for left := 10; left < 1e5; left *= 2 {
		remaining := left
		l, err := solver(t, "auto").Solve(countdown{done, &remaining}, p, Options{})
		if err == nil {
			found++
			err = Check(p, l)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled after %d looks: %v", left, err)
		}
	}
	if found == 0 {
		t.Error("no layout was returned on time")
	}
}

// TestLate gives solvers no time at all.
func TestLate(t *testing.T) {
	p := random(rand.New(rand.NewPCG(6, 5)), 3000, 1)
	done, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, e := range Solvers() {
		if l, err := e.Solver.Solve(done, p, Options{}); err != nil || Check(p, l) != nil {
			t.Errorf("%s: %v, %v", e.Name, err, Check(p, l))
		}
	}
	for seed := range uint64(16) {
		p := involved(rand.New(rand.NewPCG(seed, 5)), 4000, feature(seed), 50)
		if l, err := (generalSolver{}).Solve(done, p, Options{}); err != nil || Check(p, l) != nil {
			t.Errorf("features %b: %v, %v", seed, err, Check(p, l))
		}
	}
}

// TestCancelledBetweenComponents cancels as soon as the first component has a layout: the second gets one all the same.
func TestCancelledBetweenComponents(t *testing.T) {
	p := packed(rand.New(rand.NewPCG(8, 8)), 80, 10_000, 300)
	solve := func(left int) (Layout, error) {
		return solver(t, "auto").Solve(countdown{t.Context(), &left}, p, Options{Workers: 1})
	}
	left := 1
	for ; left < 1e4; left++ {
		if _, err := solve(left); err == nil {
			break
		}
	}
	p.add(100, 101, 1)
	if l, err := solve(left); err != nil || Check(p, l) != nil {
		t.Errorf("cancelled after %d looks: %v, %v", left, err, Check(p, l))
	}
}

func TestPassesAllocateNothing(t *testing.T) {
	in := newInstance(training(rand.New(rand.NewPCG(7, 7)), 5, 100))
	var w workspace
	out := make([]int64, in.len())
	for _, m := range []method{skylineBy{"TWA"}, orderedFit{by: "ZW"}} {
		if n := testing.AllocsPerRun(3, func() { m.layout(in, &w, func(int64) bool { return false }, out) }); n > 0 {
			t.Errorf("%+v: %g allocations", m, n)
		}
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

func solver(t testing.TB, name string) Solver {
	t.Helper()
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ExampleSolver() {
	p := &Problem{Start: []int64{0, 1, 3}, End: []int64{4, 3, 5}, Size: []int64{1000, 600, 512}, Align: 512}
	solver, _ := Lookup("auto")
	layout, err := solver.Solve(context.Background(), p, Options{})
	fmt.Println(layout.Offsets, layout.Peak, layout.Optimal(), err)
	// Output: [0 1024 1024] 2048 true <nil>
}
