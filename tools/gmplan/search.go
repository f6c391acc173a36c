package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gm/internal/cli"
	"gm/internal/dsa"
	"gm/internal/dsa/lp"
	"gm/internal/dsa/solvers"
	"gm/internal/plan/layout"
	"gm/internal/report"
)

// search holds the flags of a search.
type search struct {
	Solver   string        `default:"auto" help:"The solver; gmplan --help lists them."`
	Capacity []capacity    `sep:"none" placeholder:"[ARENA=]SIZE" help:"The size that each arena, or the named one, has to fit in; may be repeated. The search ends at the first layout that fits; if none is found, the exit status is 1. Without it, the search minimizes the peak."`
	Time     time.Duration `default:"5s" help:"How long to improve the layout of each arena that is not proven optimal. Ctrl-C also ends the search and keeps the best layout."`
	Seed     uint64        `placeholder:"N" help:"The seed of random choices."`
	Threads  int           `placeholder:"N" help:"The number of threads that search. One per core by default."`
	LP       string        `name:"lp" placeholder:"FILE" help:"Also write the problem as a mixed integer program, in CPLEX's LP format for glpsol or cbc."`
}

// check returns an error for wrong usage.
func (s *search) check() error {
	if _, err := solvers.Lookup(s.Solver); err != nil {
		return cli.Usage("--solver: %v", err)
	}
	return s.checkBounds()
}

// checkBounds is check without the name of the solver.
func (s *search) checkBounds() error {
	switch {
	case s.Time <= 0:
		return cli.Usage("--time: %s, expected more than 0s", s.Time)
	case s.Threads < 0:
		return cli.Usage("--threads: %d, expected at least 0", s.Threads)
	}
	return nil
}

// checkFiles refuses to write a file over another one.
func (s *search) checkFiles(out string, in ...string) error {
	if s.LP != "" && s.LP == out {
		return cli.Usage("-o and --lp are both %s", out)
	}
	return cli.CheckFiles(in, []string{out, s.LP})
}

// layOut plans tensors. Arenas that do not fit are an error.
func (s *search) layOut(c *cli.Context, tensors *layout.Tensors, o layout.Options) (*layout.Plan, error) {
	ctx, release := interruptible(c)
	defer release()
	o.Search = func(ctx context.Context, solver dsa.Solver, tasks []layout.Task) ([]dsa.Layout, error) {
		results, err := s.all(ctx, c, solver, tasks)
		if err != nil {
			return nil, err
		}
		return layoutsOf(results), misfit(results, s.Time)
	}
	return layout.Solve(ctx, tensors, o)
}

// all finds a layout for each task, which may not fit, and shows its progress on a terminal.
// When ctx ends, each remaining task has one second.
func (s *search) all(ctx context.Context, c *cli.Context, solver dsa.Solver, tasks []layout.Task) ([]result, error) {
	if err := s.checkArenas(tasks); err != nil {
		return nil, err
	}
	if err := s.writeLP(c, tasks); err != nil {
		return nil, err
	}
	results := make([]result, len(tasks))
	for i, task := range tasks {
		var err error
		if results[i], err = s.one(ctx, c, solver, task); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		c.Note("interrupted: kept the best layouts so far")
	}
	return results, nil
}

// one finds the layout of a task.
func (s *search) one(interrupt context.Context, c *cli.Context, solver dsa.Solver, task layout.Task) (result, error) {
	ctx, cancel := s.deadline(interrupt)
	defer cancel()
	w := newWatch(task.Arena)
	line := c.Line(w.text)
	defer line.End()
	r := result{task: task, capacity: s.capacityOf(task.Arena)}
	start := time.Now()
	var err error
	r.layout, err = solver.Solve(ctx, task.Problem, dsa.Options{
		Capacity: r.capacity, Seed: s.Seed, Workers: s.Threads, Progress: w.progress,
	})
	r.took = time.Since(start)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r, fmt.Errorf("%s: no layout was found in %s: use a longer --time", arenaName(task.Arena), s.Time)
	case errors.Is(err, context.Canceled):
		return r, fmt.Errorf("%s: interrupted before a layout was found", arenaName(task.Arena))
	case err != nil:
		return r, fmt.Errorf("%s: %w", arenaName(task.Arena), err)
	}
	return r, nil
}

// afterInterrupt is the time to search each arena that has no layout when an interrupt ends the search.
const afterInterrupt = time.Second

// deadline returns the context of one search.
func (s *search) deadline(interrupt context.Context) (context.Context, context.CancelFunc) {
	if interrupt.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(interrupt), min(s.Time, afterInterrupt))
	}
	return context.WithTimeout(interrupt, s.Time)
}

// interruptible returns a context that ends with an interrupt. A second interrupt ends the tool.
func interruptible(c *cli.Context) (ctx context.Context, release func()) {
	regain := c.OwnSignals()
	ctx, stop := signal.NotifyContext(context.Background(), cli.Heeded(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	regained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		stop()
		regain()
		close(regained)
	})
	return ctx, func() {
		stop()
		<-regained
	}
}

// writeLP writes the file of --lp.
func (s *search) writeLP(c *cli.Context, tasks []layout.Task) error {
	if s.LP == "" {
		return nil
	}
	if len(tasks) != 1 {
		return fmt.Errorf("--lp: a program holds one arena, but there are %d: %s", len(tasks), arenaNames(tasks))
	}
	return c.File(s.LP, func(w io.Writer) error { return lp.Write(w, tasks[0].Problem, s.capacityOf(tasks[0].Arena)) })
}

// arenaName returns the name of an arena in messages.
func arenaName(name string) string {
	if name == "" {
		return "the instance"
	}
	return "arena " + report.Printable(name)
}

// arenaNames lists arenas.
func arenaNames(tasks []layout.Task) string {
	const most = 8
	var names []string
	for _, task := range tasks {
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, fmt.Sprintf("%q", task.Arena))
	}
	return strings.Join(names, ", ")
}
