package main

import (
	"io"

	"gm/internal/cli"
	"gm/internal/dsa/instance"
	"gm/internal/dsa/solvers"
	"gm/internal/plan/layout"
	"gm/internal/units"
)

type solveCmd struct {
	File   string `arg:"" optional:"" name:"instance" help:"The instance: a CSV, which may be gzipped, with the columns id, lower, upper and size. Standard input by default, or for '-'."`
	Output string `short:"o" placeholder:"FILE" help:"The file for the CSV with the offsets. Standard output by default."`
	search
	Align  units.Few `placeholder:"SIZE" help:"The alignment of offsets and sizes. By default the greatest common divisor of all sizes, alignments and given offsets."`
	Period int64     `placeholder:"N" help:"The length of an iteration that repeats without end: times are modulo N."`
	JSON   bool      `name:"json" help:"Print the summary as JSON on standard output. The CSV is written only with -o."`
	Quiet  bool      `short:"q" help:"Print no summary."`
}

// Help implements kong.HelpProvider.
func (cmd *solveCmd) Help() string {
	return "Example: gmplan solve instance.csv --capacity 1MiB -o solution.csv\n\n" +
		"The CSV is that of google/minimalloc. The optional columns alignment, offset (of a fixed buffer), same_as, next_to (ids) " +
		"and arena are used, all others are copied. A summary goes to standard error."
}

// Run implements the command.
func (cmd *solveCmd) Run(c *cli.Context) error {
	if err := cmd.check(); err != nil {
		return err
	}
	if cmd.Period < 0 {
		return cli.Usage("--period: %d, expected at least 0", cmd.Period)
	}
	if err := cmd.checkFiles(cmd.Output, cmd.File); err != nil {
		return err
	}
	in, err := instance.Open(cmd.File, instance.Options{Align: int64(cmd.Align), Period: cmd.Period})
	if err != nil {
		return err
	}
	results, err := cmd.solve(c, in)
	if err != nil {
		return err
	}
	if err := cmd.report(c, results); err != nil {
		return err
	}
	if err := misfit(results, cmd.Time); err != nil {
		return err
	}
	return cmd.write(c, in, results)
}

// solve finds the layouts of all arenas.
func (cmd *solveCmd) solve(c *cli.Context, in *instance.Instance) ([]result, error) {
	solver, err := solvers.Lookup(cmd.Solver)
	if err != nil {
		return nil, err
	}
	tasks := make([]layout.Task, len(in.Arenas))
	for i := range in.Arenas {
		tasks[i] = layout.Task{Arena: in.Arenas[i].Name, Problem: &in.Arenas[i].Problem}
	}
	ctx, release := interruptible(c)
	defer release()
	return cmd.all(ctx, c, solver, tasks)
}

// report prints the summary.
func (cmd *solveCmd) report(c *cli.Context, results []result) error {
	switch {
	case cmd.JSON:
		source := cmd.File
		if source == "" {
			source = "-"
		}
		return printJSON(c.Out, source, results)
	case cmd.Quiet:
		return nil
	}
	return printTable(c.Err, results)
}

// write writes the CSV.
func (cmd *solveCmd) write(c *cli.Context, in *instance.Instance, results []result) error {
	write := func(w io.Writer) error { return in.Write(w, layoutsOf(results)) }
	if cmd.Output != "" && cmd.Output != "-" {
		return c.File(cmd.Output, write)
	}
	if cmd.JSON {
		return nil
	}
	return write(c.Out)
}
