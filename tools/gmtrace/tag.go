package main

import (
	"errors"
	"fmt"
	"io"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/input"
	"gm/internal/trace/tags"
)

type tagCmd struct {
	File   string `arg:"" optional:"" name:"trace" help:"The trace, or a recording that gmtrace import reads, such as a PyTorch snapshot. Standard input by default, or for '-'; a pipe is spooled to a temporary file."`
	Output string `short:"o" placeholder:"FILE" help:"Write the trace to this file. Standard output by default."`
}

// Help implements kong.HelpProvider.
func (cmd *tagCmd) Help() string {
	return "Writes the same trace, in which each allocation that has no tag has the one that gmtrace show --top derives. The column derived says so, and how " +
		"certain it is.\n\nExample: gmtrace tag job.parquet -o tagged.parquet"
}

// Run implements the command.
func (cmd *tagCmd) Run(c *cli.Context) (err error) {
	if err := cli.CheckFiles([]string{cmd.File}, []string{cmd.Output}); err != nil {
		return err
	}
	source, err := input.Open(c, cmd.File)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return err
	}
	return c.Binary(cmd.Output, func(out io.Writer) error {
		w := trace.NewWriter(out, trace.Meta{})
		_, err := trace.ReadSource(source, func(r *trace.Reader) (struct{}, error) { return struct{}{}, labels.Write(r, w) })
		if err != nil {
			return err
		}
		return w.Close()
	})
}
