package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/exporter"
	"gm/internal/trace/importer"
	"gm/internal/trace/input"
)

type exportCmd struct {
	File    string `arg:"" optional:"" name:"trace" help:"The trace, or a recording that gmtrace import reads, such as a PyTorch snapshot. Standard input by default, or for '-'; a pipe is spooled to a temporary file."`
	Format  string `enum:",pickle,csv,rmm,stalloc,perfetto,tensors" default:"" placeholder:"FORMAT" help:"pickle: a PyTorch memory snapshot, for memory_viz. csv: all rows, as import reads them, with the tags that gm derives. rmm: an RMM log. stalloc: STAlloc text. perfetto: JSON for ui.perfetto.dev and chrome://tracing. tensors: a Parquet table for DuckDB, pandas or polars, one row an allocation, with its lifetime, tag and stack. By default, the extension of -o decides: .pickle, .csv, .json for perfetto, or .parquet for tensors."`
	Profile string `placeholder:"FILE" help:"With perfetto: the profile of torch.profiler of the same run, whose operators and kernels are shown beside the memory."`
	Output  string `short:"o" placeholder:"FILE" help:"Write to this file. Standard output by default."`
}

// Help implements kong.HelpProvider.
func (cmd *exportCmd) Help() string {
	return "Example: gmtrace export -o snapshot.pickle job.parquet\n\nExample: gmtrace export --format rmm job.parquet > rmm.log\n\nExample: gmtrace export -o tensors.parquet job.parquet"
}

// Run implements the command.
func (cmd *exportCmd) Run(c *cli.Context) (err error) {
	format := exporter.Format(cmd.Format)
	if format == "" {
		format = exporter.FormatOf(cmd.Output)
	}
	if format == "" {
		return cli.Usage("name a format with --format, or an output that ends in .pickle, .csv, .json or .parquet")
	}
	if cmd.Profile != "" && format != exporter.Perfetto {
		return cli.Usage("--profile is for --format perfetto")
	}
	if err := cli.CheckFiles([]string{cmd.File, cmd.Profile}, []string{cmd.Output}); err != nil {
		return err
	}
	source, err := input.Open(c, cmd.File)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	open := func() (*trace.Reader, error) { return trace.NewReader(source, source.Size(), source.Name()) }
	profile, closeProfile, err := cmd.openProfile(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProfile()) }()
	write := func(out io.Writer) error {
		return exporter.Export(open, profile, format, out, func(text string) { c.Warn("%s", text) })
	}
	if format.Binary() || cmd.Output != "" && cmd.Output != "-" {
		return c.Binary(cmd.Output, write)
	}
	return write(c.Out)
}

// openProfile opens the profile, nil if none is wanted. The returned function closes it.
func (cmd *exportCmd) openProfile(c *cli.Context) (*importer.Input, func() error, error) {
	if cmd.Profile == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.Open(cmd.Profile)
	if err != nil {
		return nil, nil, err
	}
	in, err := importer.Open(c.Reader(f), cmd.Profile)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return in, func() error { return errors.Join(in.Close(), f.Close()) }, nil
}
