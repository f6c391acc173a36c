package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/overview"
	"gm/internal/report"
	"gm/internal/units"
)

type showCmd struct {
	File string `arg:"" optional:"" name:"trace" help:"The trace. Standard input by default, or for '-'; a pipe is spooled to a temporary file."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *showCmd) Help() string { return "Example: gmtrace import snapshot.pickle | gmtrace show" }

// Run implements the command.
func (cmd *showCmd) Run(c *cli.Context) (err error) {
	r, err := trace.Open(cmd.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	o, err := overview.Read(r)
	if err != nil {
		return err
	}
	if cmd.JSON {
		out := json.NewEncoder(c.Out)
		out.SetIndent("", "  ")
		return out.Encode(o)
	}
	var text strings.Builder
	if err := show(&text, o); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, text.String())
	return err
}

// graph is the size of the curve of live bytes, in characters.
const (
	graphWidth  = 64
	graphHeight = 12
)

func show(w *strings.Builder, o *overview.Overview) error {
	line := func(title, format string, args ...any) {
		fmt.Fprintf(w, "%-12s%s\n", title, report.Printable(fmt.Sprintf(format, args...)))
	}
	if o.Meta.Source != "" {
		line("source", "%s", o.Meta.Source)
	}
	if o.Meta.AllocConf != "" {
		line("settings", "%s", o.Meta.AllocConf)
	}
	line("rows", "%d in %s", o.Rows, time.Duration(o.EndNS-o.StartNS).Round(time.Millisecond))
	var events []string
	for _, e := range o.Events {
		events = append(events, fmt.Sprintf("%s %d", e.Op, e.Count))
	}
	line("events", "%s", strings.Join(events, ", "))
	for _, d := range o.Devices {
		fmt.Fprintf(w, "\ndevice %d\n", d.Ordinal)
		line("allocs", "%d, %d of them never freed", d.Allocs, d.Unfreed)
		line("peak live", "%s (%d bytes) at row %d, after %s", units.Bytes(d.PeakLive), d.PeakLive, d.PeakRow,
			time.Duration(d.PeakNS-o.StartNS).Round(time.Millisecond))
		if d.PeakReserved > 0 {
			line("reserved", "%s (%d bytes) at the peak", units.Bytes(d.PeakReserved), d.PeakReserved)
		}
		for _, oom := range d.OOMs {
			line("OOM", "at row %d: %s requested, %s free on the device", oom.Row, units.Bytes(oom.Size), units.Bytes(oom.Free))
		}
		if len(d.Pools) > 0 {
			line("pools", "private: %s", strings.Join(d.Pools, ", "))
		}
		line("iterations", "%s", iterationsLine(d.Iterations))
		if err := showTables(w, d); err != nil {
			return err
		}
		showCurve(w, o, d)
	}
	return nil
}

func iterationsLine(spans []overview.Span) string {
	if len(spans) == 0 {
		return "none found"
	}
	return fmt.Sprintf("%d found, rows %d to %d", len(spans), spans[0].First, spans[len(spans)-1].End)
}

func showTables(w io.Writer, d *overview.Device) error {
	streams := report.Table{Titles: []string{"stream", "allocs", "peak live"}}
	for _, s := range d.Streams {
		streams.Add(strconv.FormatInt(s.Handle, 10), strconv.FormatInt(s.Allocs, 10), units.Bytes(s.PeakLive).String())
	}
	sizes := report.Table{Titles: []string{"largest sizes", "bytes", "times"}}
	for _, s := range d.Largest {
		sizes.Add(units.Bytes(s.Bytes).String(), strconv.FormatInt(s.Bytes, 10), strconv.FormatInt(s.Count, 10))
	}
	for _, t := range []*report.Table{&streams, &sizes} {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

func showCurve(w *strings.Builder, o *overview.Overview, d *overview.Device) {
	bytes := d.Curve(o.StartNS, o.EndNS, graphWidth)
	unit, name := units.Bytes(d.PeakLive).Unit()
	for i := range bytes {
		bytes[i] /= unit
	}
	fmt.Fprintf(w, "\n%s\n", asciigraph.Plot(bytes, asciigraph.Height(graphHeight), asciigraph.LowerBound(0), asciigraph.Precision(2),
		asciigraph.Caption("live "+name+" over time")))
}
