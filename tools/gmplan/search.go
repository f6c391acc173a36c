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

// search is how layouts are searched for.
type search struct {
	Solver   string        `default:"auto" help:"Which solver to use; see gmplan --help."`
	Capacity []capacity    `sep:"none" placeholder:"[ARENA=]SIZE" help:"What each arena has to fit in, or the one that is named; may be repeated. The search ends with a layout that fits; if there is none, the exit status is 1. Without, the least peak is sought."`
	Time     time.Duration `default:"5s" help:"How long to search in each arena for a better layout that is not proven optimal. Ctrl-C ends the search as well: the best so far is kept."`
	Seed     uint64        `placeholder:"N" help:"Of what is random in a search."`
	Threads  int           `placeholder:"N" help:"How many threads search. One for each core by default."`
	LP       string        `name:"lp" placeholder:"FILE" help:"Write the problem as a mixed integer program as well, in CPLEX's LP format for glpsol or cbc."`
}

// check looks for wrong usage.
func (s *search) check() error {
	if _, err := solvers.Lookup(s.Solver); err != nil {
		return cli.Usage("--solver: %v", err)
	}
	return s.checkBounds()
}

// checkBounds looks for wrong usage in all but the solver.
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

// layOut plans tensors in arenas that fit.
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

// all finds a layout for each task, which may be one that does not fit, and says so on a terminal while it does.
// When ctx ends, what is left is searched for a second each.
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
		c.Note("interrupted: the best layouts so far are kept")
	}
	return results, nil
}

// one searches for the layout of a task.
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
		return r, fmt.Errorf("%s: no layout was found in %s", arenaName(task.Arena), s.Time)
	case errors.Is(err, context.Canceled):
		return r, fmt.Errorf("%s: interrupted before a layout was found", arenaName(task.Arena))
	case err != nil:
		return r, fmt.Errorf("%s: %w", arenaName(task.Arena), err)
	}
	return r, nil
}

// afterInterrupt is how long each arena is searched that has no layout when an interrupt ends the search.
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
		return fmt.Errorf("--lp: there are %d arenas, and a program is of one: %s", len(tasks), arenaNames(tasks))
	}
	return c.File(s.LP, func(w io.Writer) error { return lp.Write(w, tasks[0].Problem, s.capacityOf(tasks[0].Arena)) })
}

// arenaName returns what messages call an arena.
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
