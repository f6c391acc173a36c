package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/report/units"
	"gm/internal/trace/overview"
)

type showCmd struct {
	File  string     `arg:"" optional:"" name:"trace" help:"The trace. Standard input by default, or for '-'; a pipe is spooled to a temporary file."`
	Top   topFlag    `placeholder:"[N]" help:"Say instead what lives at the peak, and when a request failed: the N stacks that hold most, 10 if N is left out, and the tags, streams and sizes."`
	At    momentFlag `placeholder:"TIME|ROW" help:"Look at this moment instead of the peak: a time from the first row, such as 1.5s, or a row's number. Prints what --top does."`
	Pprof string     `placeholder:"FILE" help:"Write a profile for go tool pprof: bytes that live at the peak, or --at, and bytes allocated."`

	cli.Pictures `set:"picture=Draw live bytes over time, and which addresses they have."`

	By     string `enum:"tag,stack" default:"tag" help:"What the picture tells apart: tags, or the 8 stacks that hold most at the peak. (${enum})"`
	Follow bool   `help:"Print what is known of a capture that still writes, each second, until it ends."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *showCmd) Help() string {
	return "Example: gmtrace import snapshot.pickle | gmtrace show\n\nExample: gmtrace show --top 20 job.parquet\n\n" +
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
	source, err := column.OpenSource(cmd.File)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	o, err := overviewOf(source)
	if err != nil {
		return err
	}
	warnOf(c, source, o)
	switch {
	case cmd.Pprof != "" || cmd.Pictures.Any():
		return cmd.write(c, source, o)
	case cmd.Top > 0 || cmd.At.set:
		return cmd.top(c, source, o)
	case cmd.JSON:
		return cli.WriteJSON(c.Out, o)
	}
	var text strings.Builder
	if err := show(&text, o); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, text.String())
	return err
}

// warnOf says where a trace does not agree with itself.
func warnOf(c *cli.Context, source *column.Source, o *overview.Overview) {
	for _, text := range o.Oddities() {
		c.Warn("trace %s: %s", source.Name(), text)
	}
}

func overviewOf(source *column.Source) (*overview.Overview, error) {
	return reading(source, overview.Read)
}

// reading calls read with a reader of the trace, from its beginning.
func reading[T any](source *column.Source, read func(*trace.Reader) (T, error)) (result T, err error) {
	r, err := trace.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return read(r)
}

func show(w *strings.Builder, o *overview.Overview) error {
	head(w, o)
	var events []string
	for _, e := range o.Events {
		events = append(events, fmt.Sprintf("%s %d", e.Op, e.Count))
	}
	if len(events) > 0 {
		list(w, "events", events)
	}
	for _, d := range o.Devices {
		fmt.Fprintf(w, "\ndevice %d\n", d.Ordinal)
		if d.Framework() {
			if err := showFramework(w, o, d); err != nil {
				return err
			}
		} else if n := len(o.Steps); n > 0 {
			line(w, "iterations", "marks: %d steps", n)
		}
		if d.Driver != nil {
			if err := showDriver(w, o, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// head prints what the trace is.
func head(w *strings.Builder, o *overview.Overview) {
	if o.Meta.Source != "" {
		line(w, "source", "%s", o.Meta.Source)
	}
	if o.Meta.Command != "" {
		line(w, "command", "%s", o.Meta.Command)
	}
	if o.Meta.Incomplete != "" {
		line(w, "incomplete", "%s", o.Meta.Incomplete)
	}
	if o.Meta.AllocConf != "" {
		line(w, "settings", "%s", o.Meta.AllocConf)
	}
	line(w, "rows", "%d in %s", o.Rows, time.Duration(o.EndNS-o.StartNS).Round(time.Millisecond))
}

// line prints one line of facts under a title.
func line(w *strings.Builder, title, format string, args ...any) {
	fmt.Fprintf(w, "%-*s%s\n", titleWidth, title, report.Printable(fmt.Sprintf(format, args...)))
}

// Lines are so wide at most, and so much of that is for a title.
const (
	columns    = 100
	titleWidth = 12
)

// list prints words under a title, on as many lines as they need.
func list(w *strings.Builder, title string, words []string) {
	text := ""
	for i, word := range words {
		if i < len(words)-1 {
			word += ", "
		}
		if len(text)+len(strings.TrimSpace(word)) > columns-titleWidth {
			line(w, title, "%s", strings.TrimSpace(text))
			title, text = "", ""
		}
		text += word
	}
	line(w, title, "%s", text)
}

// exact returns a size as people and as programs read it.
func exact(bytes int64) string { return fmt.Sprintf("%s (%d bytes)", units.Bytes(bytes), bytes) }

// after returns when a moment was, counted from the first row.
func after(o *overview.Overview, timeNS int64) time.Duration {
	return time.Duration(timeNS - o.StartNS).Round(time.Millisecond)
}
