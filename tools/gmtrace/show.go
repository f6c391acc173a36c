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

type showCmd struct {
	File  string     `arg:"" optional:"" name:"trace" help:"The trace, a recording that gmtrace import reads, such as a PyTorch snapshot, or the folder with the traces of a job's ranks. Standard input by default, or for '-'; a pipe is spooled to a temporary file."`
	Top   topFlag    `placeholder:"[N]" help:"Show instead what is live at the peak, and when a request failed: the N stacks that hold most, 10 by default, and the tags, streams and sizes."`
	At    momentFlag `placeholder:"TIME|ROW" help:"Show this moment instead of the peak, as --top does: a time since the first row, such as 1.5s, or the number of a row."`
	Pprof string     `placeholder:"FILE" help:"Write a profile for go tool pprof: bytes that are live at the peak, or --at, and bytes allocated."`

	cli.Pictures `set:"picture=Draw live bytes over time, and their addresses."`

	By        string     `enum:"tag,stack" default:"tag" help:"What the colours of the picture stand for: tags, or the 8 stacks that hold most at the peak. (${enum})"`
	From      momentFlag `placeholder:"TIME|ROW" help:"Begin the picture there."`
	To        momentFlag `placeholder:"TIME|ROW" help:"End the picture there."`
	Iteration *int       `placeholder:"N" help:"Draw iteration N alone, counted from 0 as gmtrace show counts them."`
	Axis      string     `enum:"time,rows" default:"time" help:"What the picture's axis counts: time, or the rows of the trace. (${enum})"`

	Follow bool `help:"Print the state of a running capture each second, until it ends."`
	JSON   bool `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *showCmd) Help() string {
	return "Example: gmtrace import snapshot.pickle | gmtrace show\n\nExample: gmtrace show --top 20 job.parquet\n\n" +
		"Example: gmtrace show --png step.png --iteration 3 job.parquet\n\nExample: gmtrace show --png ranks.png traces/\n\n" +
		"Example: gmtrace show --pprof job.pb.gz --png job.png job.parquet && go tool pprof -http : job.pb.gz"
}

// Run implements the command.
func (cmd *showCmd) Run(c *cli.Context) (err error) {
	if cmd.Follow {
		return cmd.follow(c)
	}
	if err := cmd.check(); err != nil {
		return err
	}
	if ranks.IsFolder(cmd.File) {
		return cmd.ranks(c)
	}
	source, err := input.Open(c, cmd.File)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		return err
	}
	warnOf(c, source, o)
	switch {
	case cmd.Pprof != "" || cmd.Pictures.Any():
		return cmd.write(c, source, o)
	case cmd.Top > 0 || cmd.At.set:
		return cmd.top(c, source, o)
	}
	leaks, err := leaksOf(c, source, o)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, struct {
			*overview.Overview
			Leaks []changes.Leak `json:"leaks"`
		}{o, leaks})
	}
	var out strings.Builder
	if err := text.Overview(&out, o); err != nil {
		return err
	}
	if len(leaks) > 0 {
		out.WriteString("\n")
		text.Leaks(&out, leaks)
	}
	text.Failures(&out, o, source.Name())
	_, err = io.WriteString(c.Out, out.String())
	return err
}

// leaksOf returns what leaks in a trace. It warns if that cannot be known.
func leaksOf(c *cli.Context, source *column.Source, o *overview.Overview) ([]changes.Leak, error) {
	leaks, err := changes.Leaks(source, o)
	if errors.Is(err, changes.ErrTooMany) {
		c.Warn("leaks are not known: %v", err)
		err = nil
	}
	return leaks, err
}

// warnOf warns about inconsistencies of a trace.
func warnOf(c *cli.Context, source *column.Source, o *overview.Overview) {
	for _, oddity := range o.Oddities() {
		c.Warn("trace %s: %s", source.Name(), oddity)
	}
}
