package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gm/internal/cli"
	"gm/internal/dsa"
	"gm/internal/plan/layout"
)

// solverFunc is a function as a solver.
type solverFunc func(ctx context.Context, o dsa.Options) (dsa.Layout, error)

func (f solverFunc) Solve(ctx context.Context, _ *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	return f(ctx, o)
}

// command runs a function as a command of the tool.
type command struct {
	Do do `cmd:"" default:"1"`
}

type do struct{ run func(c *cli.Context) error }

func (d *do) Run(c *cli.Context) error { return d.run(c) }

func run(t *testing.T, f func(c *cli.Context) error) {
	t.Helper()
	if status := (cli.Tool{Name: "test", Grammar: &command{do{f}}}).Main(nil); status != 0 {
		t.Errorf("status %d", status)
	}
}

var arenas = []layout.Task{{Arena: "a", Problem: &dsa.Problem{}}, {Arena: "b", Problem: &dsa.Problem{}}}

func TestInterruptKeepsTheBest(t *testing.T) {
	var left []time.Duration // of each search
	untilDone := solverFunc(func(ctx context.Context, _ dsa.Options) (dsa.Layout, error) {
		deadline, _ := ctx.Deadline()
		left = append(left, time.Until(deadline))
		if len(left) == 1 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				return dsa.Layout{}, err
			}
			<-ctx.Done()
		}
		return dsa.Layout{Peak: int64(len(left))}, nil
	})
	run(t, func(c *cli.Context) error {
		ctx, release := interruptible(c)
		defer release()
		s := search{Time: time.Hour}
		results, err := s.all(ctx, c, untilDone, arenas)
		if err != nil || len(results) != 2 || results[0].layout.Peak != 1 || results[1].layout.Peak != 2 {
			t.Errorf("%+v, %v", results, err)
		}
		return nil
	})
	if left[0] < time.Minute || left[1] > afterInterrupt {
		t.Errorf("deadlines after %s", left)
	}
}

func TestNoLayout(t *testing.T) {
	for want, test := range map[string]struct {
		solver solverFunc
		limit  time.Duration
	}{
		"arena a: no layout was found in 1ms: use a longer --time": {func(ctx context.Context, _ dsa.Options) (dsa.Layout, error) {
			<-ctx.Done()
			return dsa.Layout{}, ctx.Err()
		}, time.Millisecond},
		"arena a: broken": {func(context.Context, dsa.Options) (dsa.Layout, error) {
			return dsa.Layout{}, errors.New("broken")
		}, time.Hour},
	} {
		run(t, func(c *cli.Context) error {
			s := search{Time: test.limit}
			if _, err := s.all(t.Context(), c, test.solver, arenas); err == nil || err.Error() != want {
				t.Errorf("%v, expected %s", err, want)
			}
			return nil
		})
	}
}

func TestOptionsReachTheSolver(t *testing.T) {
	s := search{Time: time.Hour, Seed: 7, Threads: 3}
	for _, text := range []string{"b=1K", "2K", "c=5"} {
		var c capacity
		if err := c.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		s.Capacity = append(s.Capacity, c)
	}
	if got := [3]int64{s.capacityOf("a"), s.capacityOf("b"), s.capacityOf("")}; got != [3]int64{2048, 1024, 2048} {
		t.Errorf("capacities %d", got)
	}
	run(t, func(c *cli.Context) error {
		_, err := s.all(t.Context(), c, nil, arenas)
		if want := `--capacity: there is no arena "c", expected one of "a", "b"`; err == nil || err.Error() != want {
			t.Errorf("%v, expected %s", err, want)
		}
		_, err = s.one(t.Context(), c, solverFunc(func(_ context.Context, o dsa.Options) (dsa.Layout, error) {
			if o.Capacity != 1024 || o.Seed != 7 || o.Workers != 3 || o.Progress == nil {
				t.Errorf("%+v", o)
			}
			return dsa.Layout{}, nil
		}), arenas[1])
		return err
	})
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		peak, bound, capacity int64
		verdict               verdict
		err                   string
	}{
		{2048, 2048, 0, optimal, ""},
		{2048, 1024, 0, feasible, ""},
		{2048, 1024, 2048, fits, ""},
		{2 << 20, 1 << 20, 4096, doesNotFit, "arena a needs at least 1 MiB (lower bound), capacity 4 KiB: does not fit"},
		{1 << 20, 1 << 20, 1<<20 - 1, doesNotFit, "arena a needs at least 1048576 bytes (lower bound), capacity 1048575 bytes: does not fit"},
		{4096, 1024, 2048, noFitFound, "arena a: no layout within 2 KiB was found in 3s: best 4 KiB, lower bound 1 KiB"},
	} {
		r := result{task: arenas[0], layout: dsa.Layout{Peak: test.peak, Bound: test.bound}, capacity: test.capacity, took: 3 * time.Second}
		if got := r.verdict(); got != test.verdict {
			t.Errorf("%+v: %s", test, got)
		}
		text := ""
		if err := misfit([]result{r}, 5*time.Second); err != nil {
			text = err.Error()
		}
		if text != test.err {
			t.Errorf("%q, expected %q", text, test.err)
		}
	}
}

func TestWatch(t *testing.T) {
	w := newWatch("d0")
	if got := w.text(); got != "arena d0  0.0s" {
		t.Errorf("%q", got)
	}
	w.progress(dsa.Progress{Peak: 1010, Bound: 1000, Method: "skyline-A"})
	if got := w.text(); !strings.HasPrefix(got, "arena d0  peak 1010 B  bound 1000 B  gap 1.00 %  0.0s  skyline-A") {
		t.Errorf("%q", got)
	}
}
