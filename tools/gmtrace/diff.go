package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/changes"
	"gm/internal/trace/overview"
)

type diffCmd struct {
	A          string `arg:"" name:"a" help:"A trace. Standard input for '-'; a pipe is spooled to a temporary file."`
	B          string `arg:"" optional:"" name:"b" help:"The trace that it is compared with."`
	Iterations []int  `placeholder:"I,J" help:"Compare iterations I and J of one trace, counted from 0, instead of two traces."`
	JSON       bool   `name:"json" help:"Print JSON, with all groups and whole stacks."`
}

// Help implements kong.HelpProvider.
func (cmd *diffCmd) Help() string {
	return "Example: gmtrace diff before.parquet after.parquet\n\nExample: gmtrace diff --iterations 3,10 job.parquet"
}

// diff is what changed, as it is printed.
type diff struct {
	A       diffSide          `json:"a"`
	B       diffSide          `json:"b"`
	Devices []*changes.Device `json:"devices"`
	Leaks   []diffLeak        `json:"leaks"`
}

// diffSide is one of the two that are compared.
type diffSide struct {
	Trace     string `json:"trace"`
	Source    string `json:"source"`
	Rows      int64  `json:"rows"`
	Iteration *int   `json:"iteration"` // null for a whole trace

	contents []*changes.Contents
	leaks    []diffLeak
}

type diffLeak struct {
	Trace string `json:"trace"`
	changes.Leak
}

// Run implements the command.
func (cmd *diffCmd) Run(c *cli.Context) error {
	d, err := cmd.compare(c)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, d)
	}
	var text strings.Builder
	if err := showDiff(&text, d); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, text.String())
	return err
}

func (cmd *diffCmd) compare(c *cli.Context) (*diff, error) {
	switch {
	case len(cmd.Iterations) > 0 && cmd.B != "":
		return nil, cli.Usage("--iterations compares iterations of one trace, not %s and %s", cmd.A, cmd.B)
	case len(cmd.Iterations) > 0 && len(cmd.Iterations) != 2:
		return nil, cli.Usage("--iterations takes two numbers, such as 3,10")
	case len(cmd.Iterations) > 0:
		return diffIterations(c, cmd.A, cmd.Iterations[0], cmd.Iterations[1])
	case cmd.B == "":
		return nil, cli.Usage("name a second trace, or two iterations with --iterations I,J")
	case cmd.A == "-" && cmd.B == "-":
		return nil, cli.Usage("standard input can be one of the traces only")
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
	return newDiff(a, b, append(a.leaks, b.leaks...), false), nil
}

// readSide reads a whole trace.
func readSide(c *cli.Context, name string) (side diffSide, err error) {
	source, o, err := openOverview(c, name)
	if err != nil {
		return side, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	side = diffSide{Trace: source.Name(), Source: o.Source, Rows: o.Rows}
	if side.contents, err = contentsOf(source, o, nil); err != nil {
		return side, err
	}
	for _, d := range side.contents {
		for _, l := range d.Leaks {
			side.leaks = append(side.leaks, diffLeak{side.Trace, l})
		}
	}
	return side, nil
}

func openOverview(c *cli.Context, name string) (*column.Source, *overview.Overview, error) {
	source, err := column.OpenSource(name)
	if err != nil {
		return nil, nil, fmt.Errorf("trace: %w", err)
	}
	o, err := overviewOf(source)
	if err != nil {
		return nil, nil, errors.Join(err, source.Close())
	}
	warnOf(c, source, o)
	return source, o, nil
}

func contentsOf(source *column.Source, o *overview.Overview, spans map[int32]overview.Span) ([]*changes.Contents, error) {
	return reading(source, func(r *trace.Reader) ([]*changes.Contents, error) { return changes.Read(r, o, spans) })
}

// diffIterations compares two iterations of one trace, on every device that has them.
func diffIterations(c *cli.Context, name string, i, j int) (d *diff, err error) {
	source, o, err := openOverview(c, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	whole, err := contentsOf(source, o, nil)
	if err != nil {
		return nil, err
	}
	var sides [2]diffSide
	for n, number := range [2]int{i, j} {
		spans, err := spansOf(source.Name(), o, number)
		if err != nil {
			return nil, err
		}
		sides[n] = diffSide{Trace: source.Name(), Source: o.Source, Rows: o.Rows, Iteration: &number}
		if sides[n].contents, err = contentsOf(source, o, spans); err != nil {
			return nil, err
		}
	}
	var leaks []diffLeak
	for _, c := range whole {
		for _, l := range c.Leaks {
			leaks = append(leaks, diffLeak{source.Name(), l})
		}
	}
	return newDiff(sides[0], sides[1], leaks, true), nil
}

// spansOf returns where an iteration is on each device.
func spansOf(name string, o *overview.Overview, number int) (map[int32]overview.Span, error) {
	spans := map[int32]overview.Span{}
	most := 0
	for _, d := range o.Devices {
		all := changes.Iterations(o, d)
		most = max(most, len(all))
		if number >= 0 && number < len(all) {
			spans[d.Ordinal] = all[number]
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("trace %s: no iterations are found in it", name)
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("trace %s: no iteration %d, it has those from 0 to %d", name, number, most-1)
	}
	return spans, nil
}

func newDiff(a, b diffSide, leaks []diffLeak, oneTrace bool) *diff {
	d := &diff{A: a, B: b, Devices: []*changes.Device{}, Leaks: append([]diffLeak{}, leaks...)}
	byDevice := map[int32][2]*changes.Contents{}
	var order []int32
	for n, side := range []diffSide{a, b} {
		for _, c := range side.contents {
			pair, known := byDevice[c.Device]
			if !known {
				order = append(order, c.Device)
			}
			pair[n] = c
			byDevice[c.Device] = pair
		}
	}
	slices.Sort(order)
	for _, device := range order {
		pair := byDevice[device]
		d.Devices = append(d.Devices, changes.Compare(pair[0], pair[1], oneTrace))
	}
	return d
}
