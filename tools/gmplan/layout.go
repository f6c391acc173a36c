package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"gm/formats/plan"
	"gm/internal/cli"
	"gm/internal/plan/layout"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

type layoutCmd struct {
	File      string    `arg:"" optional:"" name:"trace" help:"The trace, or a recording that gmtrace import reads, such as a PyTorch snapshot; or the folder with the traces of a job's ranks, for one plan of all that are alike. Standard input by default, or for '-'; a pipe is copied to a temporary file."`
	Output    string    `short:"o" placeholder:"FILE" help:"The file for the plan. Standard output by default."`
	Iteration string    `default:"all" placeholder:"all|auto|N" help:"What to plan: the whole trace, the middle one of its iterations, or number N, counted from 0 as gmtrace show counts them. Tensors that outlive the iteration have arenas of their own."`
	Periodic  bool      `help:"Plan the iteration for endless repetition: tensors that are freed in the next iteration, within a period, are part of it."`
	Streams   string    `default:"shared" enum:"shared,separate" help:"Whether memory may pass from one stream to another: ${enum}."`
	Align     units.Few `placeholder:"SIZE" help:"The alignment of offsets and sizes. By default that of the trace, 512 for PyTorch."`
	search
}

// Help implements kong.HelpProvider.
func (cmd *layoutCmd) Help() string {
	return "Example: gmplan job.parquet -o plan.parquet\n\nA summary goes to standard error."
}

// Run implements the command.
func (cmd *layoutCmd) Run(c *cli.Context) error {
	if err := cmd.check(); err != nil {
		return err
	}
	if cmd.Periodic && cmd.Iteration == "all" {
		return cli.Usage("--periodic: needs one iteration, but --iteration is all: use auto or a number")
	}
	if err := cmd.checkFiles(cmd.Output, cmd.File); err != nil {
		return err
	}
	if ranks.IsFolder(cmd.File) {
		j, err := cmd.chooseRank(c)
		if err != nil {
			return err
		}
		return errors.Join(cmd.plan(c), j.Incomplete())
	}
	return cmd.plan(c)
}

// plan makes the plan of a trace.
func (cmd *layoutCmd) plan(c *cli.Context) (err error) {
	r, err := openTrace(c, cmd.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	tensors, err := layout.Collect(r.Reader)
	if err != nil {
		return err
	}
	if tensors.Len() == 0 {
		return fmt.Errorf("trace %s: holds no allocations of a framework, so there is nothing to plan", r.Name())
	}
	options := layout.Options{Solver: cmd.Solver, Align: int64(cmd.Align), Periodic: cmd.Periodic}
	if cmd.Streams == "separate" {
		options.Streams = layout.Separate
	}
	if options.Window, err = cmd.window(tensors); err != nil {
		return err
	}
	p, err := cmd.layOut(c, tensors, options)
	if err != nil {
		return fmt.Errorf("plan trace %s: %w", r.Name(), err)
	}
	if err := writePlan(c, cmd.Output, p); err != nil {
		return err
	}
	c.Note("%s; %s", summary(p, p.Meta.LowerBound), units.Count(len(p.Member), "tensor"))
	return nil
}

// writePlan writes a plan to a file or standard output.
func writePlan(c *cli.Context, path string, p *layout.Plan) error {
	return c.Binary(path, func(out io.Writer) error {
		w := plan.NewWriter(out, p.Meta)
		if err := p.Write(w); err != nil {
			return err
		}
		return w.Close()
	})
}

// window returns the rows to plan, nil for all.
func (cmd *layoutCmd) window(tensors *layout.Tensors) (*layout.Window, error) {
	if cmd.Iteration == "all" {
		return nil, nil
	}
	n := -1
	if cmd.Iteration != "auto" {
		var err error
		if n, err = strconv.Atoi(cmd.Iteration); err != nil || n < 0 {
			return nil, cli.Usage("--iteration: %q, expected all, auto, or a number from 0", cmd.Iteration)
		}
	}
	windows := tensors.Iterations()
	switch {
	case len(windows) == 0:
		return nil, errors.New("the trace has no iterations: none are found, and no marks end any: use --iteration all")
	case n >= len(windows):
		return nil, fmt.Errorf("no iteration %d: the trace has those from 0 to %d", n, len(windows)-1)
	case n < 0:
		n = len(windows) / 2
	}
	return &windows[n], nil
}
