package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
)

// Two workers must be so many times as fast as one at the same work: without a deadline, how much is done on a problem is counted, and no
// clock has a part in it.
const (
	threadsFactor = 1.5
	threadsSeed   = 7
)

// measureThreads times solvers that search with one worker and with two.
func measureThreads(e *experiment) error {
	for _, c := range []struct {
		solver   string
		problems []*dsa.Problem // too hard for the solver: it is not lucky
	}{
		{"exact", []*dsa.Problem{layouts.Packed(300, 100_000, 1000, 0), layouts.Packed(300, 100_000, 1000, 1), layouts.Packed(300, 100_000, 1000, 2)}},
		{"anneal", []*dsa.Problem{layouts.Packed(100, 100_000, 120, 0)}},
	} {
		s, err := solvers.Lookup(c.solver)
		if err != nil {
			e.table.Add("threads "+c.solver, "no such solver", "", "not measured")
			continue
		}
		if err := e.threads(c.solver, s, c.problems); err != nil {
			return fmt.Errorf("%s: %w", c.solver, err)
		}
	}
	return nil
}

// threads compares the times and the layouts of a solver on some problems.
func (e *experiment) threads(name string, s dsa.Solver, problems []*dsa.Problem) error {
	var took [2]time.Duration
	again, across, buffers := 0, 0, 0
	for _, p := range problems {
		buffers += p.Len()
		runs, err := inTurns(s, p)
		if err != nil {
			return err
		}
		took[0] += runs[0].best
		took[1] += runs[1].best
		if same(runs[0].layouts) {
			again++
		}
		if same(append(runs[0].layouts, runs[1].layouts...)) {
			across++
		}
	}
	n, factor := len(problems), took[0].Seconds()/took[1].Seconds()
	e.add("threads "+name, fmt.Sprintf("%d buffers, %d problems: one worker %.2f s, two %.2f s: %.2f times",
		buffers, n, took[0].Seconds(), took[1].Seconds(), factor), fmt.Sprintf("%.1f times", threadsFactor), factor >= threadsFactor)
	e.add("threads "+name+": same layout again", fmt.Sprintf("%d of %d, with two workers too: %d", again, n, across),
		fmt.Sprintf("all %d", n), min(again, across) == n)
	return nil
}

// runs are several of one solver on one problem, with so many workers.
type runs struct {
	best    time.Duration
	layouts [][]int64
}

// inTurns runs a solver with one worker and with two, in turns, as the speed of the machine changes.
func inTurns(s dsa.Solver, p *dsa.Problem) ([2]runs, error) {
	r := [2]runs{{best: math.MaxInt64}, {best: math.MaxInt64}}
	for range tries {
		for i := range r {
			start := time.Now()
			l, err := s.Solve(context.Background(), p, dsa.Options{Seed: threadsSeed, Workers: i + 1})
			took := time.Since(start)
			if err == nil {
				err = dsa.Check(p, l)
			}
			if err != nil {
				return r, err
			}
			r[i].best = min(r[i].best, took)
			r[i].layouts = append(r[i].layouts, l.Offsets)
		}
	}
	return r, nil
}

// same says whether all layouts are equal.
func same(layouts [][]int64) bool {
	return !slices.ContainsFunc(layouts, func(l []int64) bool { return !slices.Equal(l, layouts[0]) })
}
