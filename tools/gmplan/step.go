package main

import (
	"errors"
	"fmt"
	"time"

	"gm/formats/plan"
	"gm/internal/cli"
	"gm/internal/dsa"
	"gm/internal/plan/layout"
	"gm/internal/swap"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/lifetimes"
	"gm/internal/swap/store"
	"gm/internal/units"
)

type stepCmd struct {
	stepFiles
	Output string `short:"o" placeholder:"FILE" help:"The file for the plan. Standard output by default."`
	search
	Align units.Few `default:"512" placeholder:"SIZE" help:"The alignment of offsets and sizes; ${default} bytes by default, as in PyTorch."`
	Beta  units.Few `placeholder:"SIZE" help:"With gtbm: bytes of the main space that are reserved for steps that need more."`
}

// stepFiles names the files of a step.
type stepFiles struct {
	Graph    string `arg:"" optional:"" help:"The graph. Standard input by default, or for '-'."`
	Schedule string `arg:"" optional:"" help:"A schedule for the graph; '-' is standard input. Without a schedule no tensor is moved."`
}

// byMobility is the solver that takes only steps.
const byMobility = "gtbm"

// Help implements kong.HelpProvider.
func (cmd *stepCmd) Help() string {
	return "Example: gmswap plan g.parquet -m 40GiB | gmplan step g.parquet - -o plan.parquet\n\n" +
		"Solvers are those of gmplan --help, and gtbm: three groups of tensors by mobility, best fit in each (Dymem). A summary goes to standard error."
}

// Run implements the command.
func (cmd *stepCmd) Run(c *cli.Context) error {
	if err := cmd.check(); err != nil {
		return err
	}
	g, step, err := cmd.read()
	if err != nil {
		return err
	}
	tensors := layout.OfStep(g, step)
	if tensors.Len() == 0 {
		return fmt.Errorf("graph %s: needs no memory, so there is nothing to plan", g.File)
	}
	var p *layout.Plan
	var groups string
	if cmd.Solver == byMobility {
		p, groups, err = cmd.group(c, g.Graph, step, tensors)
	} else {
		p, err = cmd.layOut(c, tensors, layout.Options{Solver: cmd.Solver, Align: int64(cmd.Align)})
	}
	if err != nil {
		return fmt.Errorf("plan graph %s: %w", g.File, err)
	}
	if err := writePlan(c, cmd.Output, p); err != nil {
		return err
	}
	c.Note("%s%s", summary(p, step.Load(int64(cmd.Align))), groups)
	return nil
}

// check returns an error for wrong usage.
func (cmd *stepCmd) check() error {
	check := cmd.search.check
	if cmd.Solver == byMobility {
		check = cmd.checkBounds
	}
	if err := check(); err != nil {
		return err
	}
	switch {
	case cmd.Align == 0:
		return cli.Usage("--align: 0 bytes, expected at least 1")
	case cmd.Beta > 0 && cmd.Solver != byMobility:
		return cli.Usage("--beta is for --solver %s", byMobility)
	case cmd.Beta > plan.MaxBytes:
		return cli.Usage("--beta: %d bytes, expected at most %d", int64(cmd.Beta), int64(plan.MaxBytes))
	case cmd.LP != "" && cmd.Solver == byMobility:
		return cli.Usage("--lp: --solver %s solves no program: use another solver", byMobility)
	}
	return cmd.checkFiles(cmd.Output, cmd.Graph, cmd.Schedule)
}

// read reads the graph and the schedule, and derives the lives of tensors.
func (f *stepFiles) read() (*store.Graph, *lifetimes.Step, error) {
	if (f.Graph == "" || f.Graph == "-") && f.Schedule == "-" {
		return nil, nil, cli.Usage("the graph and the schedule are both standard input: name a file for one of them")
	}
	g, err := store.ReadGraph(f.Graph)
	if err != nil {
		return nil, nil, err
	}
	var actions []swap.Action
	of := "graph " + g.File
	if f.Schedule != "" {
		s, err := store.ReadSchedule(f.Schedule)
		if err == nil {
			err = s.Fits(g)
		}
		if err != nil {
			return nil, nil, err
		}
		actions, of = s.Actions, "schedule "+s.File
	}
	step, err := lifetimes.Of(g.Graph, actions, lifetimes.OfBase(g.Graph))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", of, err)
	}
	return g, step, nil
}

// group plans a step by mobility, and returns a summary of the groups.
func (cmd *stepCmd) group(c *cli.Context, g *swap.Graph, step *lifetimes.Step, tensors *layout.Tensors) (*layout.Plan, string, error) {
	start := time.Now()
	pool, err := gtbm.Place(c.Context(), g, step, int64(cmd.Align), int64(cmd.Beta))
	if err != nil {
		return nil, "", err
	}
	p := layout.Grouped(tensors, pool, int64(cmd.Align))
	took := time.Since(start)
	p.Meta.SolveNS = took.Nanoseconds()
	var tasks []layout.Task
	var results []result
	for _, a := range p.Arenas {
		tasks = append(tasks, layout.Task{Arena: a.Name})
		results = append(results, result{
			task: tasks[len(tasks)-1], layout: dsa.Layout{Peak: a.Peak, Bound: a.LowerBound}, capacity: cmd.capacityOf(a.Name), took: took,
		})
	}
	if err := errors.Join(cmd.checkArenas(tasks), misfit(results, cmd.Time)); err != nil {
		return nil, "", err
	}
	return p, groupSummary(pool), nil
}

// groupSummary lists the sizes of the groups of a layout by mobility.
func groupSummary(p *gtbm.Pool) string {
	return fmt.Sprintf("; main space %s: %v %s, %v %s; incremental space: %v %s", units.Bytes(p.Main), gtbm.Movable, units.Bytes(p.Ends[gtbm.Movable]),
		gtbm.Temporary, units.Bytes(p.Ends[gtbm.Temporary]), gtbm.Reclaimed, units.Bytes(p.Ends[gtbm.Reclaimed]))
}
