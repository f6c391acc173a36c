package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/changes"
	"gm/internal/trace/input"
	"gm/internal/trace/overview"
	"gm/internal/trace/ranks"
	"gm/internal/trace/text"
)

type diffCmd struct {
	A          string `arg:"" name:"a" help:"A trace, a recording that gmtrace import reads, such as a PyTorch snapshot, or the folder with the traces of a job's ranks. Standard input for '-'; a pipe is spooled to a temporary file."`
	B          string `arg:"" optional:"" name:"b" help:"The trace, recording or folder to compare it with."`
	Iterations []int  `placeholder:"I,J" help:"Compare iterations I and J of one trace, counted from 0 as gmtrace show counts them, instead of two traces."`
	JSON       bool   `name:"json" help:"Print JSON, with all groups and whole stacks."`
}

// Help implements kong.HelpProvider.
func (cmd *diffCmd) Help() string {
	return "Example: gmtrace diff before.parquet after.parquet\n\nExample: gmtrace diff --iterations 3,10 job.parquet"
}

// Run implements the command.
func (cmd *diffCmd) Run(c *cli.Context) error {
	if len(cmd.Iterations) == 0 && (ranks.IsFolder(cmd.A) || ranks.IsFolder(cmd.B)) {
		return cmd.ranks(c)
	}
	d, err := cmd.compare(c)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, d)
	}
	var out strings.Builder
	if err := text.Diff(&out, d); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, out.String())
	return err
}

func (cmd *diffCmd) compare(c *cli.Context) (*changes.Diff, error) {
	switch {
	case len(cmd.Iterations) > 0 && cmd.B != "":
		return nil, cli.Usage("--iterations compares iterations of one trace, not %s and %s", cmd.A, cmd.B)
	case len(cmd.Iterations) > 0 && len(cmd.Iterations) != 2:
		return nil, cli.Usage("--iterations takes two numbers, such as 3,10")
	case len(cmd.Iterations) > 0:
		return compareIterations(c, cmd.A, cmd.Iterations[0], cmd.Iterations[1])
	case cmd.B == "":
		return nil, cli.Usage("name a second trace, or two iterations with --iterations I,J")
	case cmd.A == "-" && cmd.B == "-":
		return nil, cli.Usage("only one of the traces can be standard input")
	}
	if err := cli.CheckFiles([]string{cmd.A, cmd.B}, nil); err != nil {
		return nil, err
	}
	a, err := readSide(c, cmd.A)
	if err != nil {
		return nil, err
	}
	b, err := readSide(c, cmd.B)
	if err != nil {
		return nil, err
	}
	return changes.CompareTraces(a, b), nil
}

// readSide reads a whole trace.
func readSide(c *cli.Context, name string) (side changes.Side, err error) {
	source, o, err := openOverview(c, name)
	if err != nil {
		return side, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return changes.ReadSide(source, o)
}

// compareIterations compares two iterations of one trace, by their numbers.
func compareIterations(c *cli.Context, name string, i, j int) (d *changes.Diff, err error) {
	source, o, err := openOverview(c, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return changes.CompareIterations(source, o, i, j)
}

func openOverview(c *cli.Context, name string) (*column.Source, *overview.Overview, error) {
	source, err := input.Open(c, name)
	if err != nil {
		return nil, nil, fmt.Errorf("trace: %w", err)
	}
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		return nil, nil, errors.Join(err, source.Close())
	}
	warnOf(c, source, o)
	return source, o, nil
}
