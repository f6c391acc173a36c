package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

type compareCmd struct {
	inputs `set:"folder=; or one folder with the traces of a job's ranks"`
	Alloc  []string `placeholder:"NAME[:SETTING=VALUE,...]" sep:"none" help:"Allocators to compare, all by default."`
	JSON   bool     `name:"json" xor:"format" help:"Print JSON."`
	CSV    bool     `name:"csv" xor:"format" help:"Print CSV."`
	Bench  bool     `name:"bench" xor:"format" help:"Print the lines of a Go benchmark, for benchstat."`

	cli.Pictures `set:"picture=Draw live and reserved bytes over time for each allocator."`

	Why bool `xor:"what" help:"Break down what each allocator reserves beyond what is requested, in bytes that add up, and list what pins its segments."`
	Fit bool `xor:"what" help:"Find the least memory with which each allocator runs the whole trace, and which cards have that much."`
}

// Help implements kong.HelpProvider.
func (cmd *compareCmd) Help() string {
	return "Example: gmbench --alloc torch,expandable --alloc torch:max_split_size_mb=128 --capacity 40GiB --png chart.png job.parquet\n\n" +
		"Example: gmbench --alloc torch,expandable --capacity 80GiB traces/"
}

// Run implements the command.
func (cmd *compareCmd) Run(c *cli.Context) error {
	specs := bench.AllSpecs()
	if len(cmd.Alloc) > 0 {
		var err error
		if specs, err = bench.ParseSpecs(strings.Join(cmd.Alloc, ",")); err != nil {
			return cli.Usage("--alloc: %v", err)
		}
	}
	if err := cmd.distinct(); err != nil {
		return err
	}
	if err := cmd.alone(); err != nil {
		return err
	}
	if len(cmd.Files) == 1 && ranks.IsFolder(cmd.Files[0]) {
		return cmd.ranks(c, specs)
	}
	programs, gpu, err := cmd.open(c)
	if err != nil {
		return err
	}
	warn(c, programs)
	if cmd.Capacity == 0 && !cmd.Fit {
		warnOfShares(c, programs, cmd.Alloc)
	}
	switch {
	case cmd.Why:
		return cmd.explain(c, programs, specs, gpu)
	case cmd.Fit:
		return cmd.fit(c, programs, specs, gpu.Costs)
	}
	progress := c.Progress("replay", int64(len(programs)*len(specs)))
	rows, err := bench.CompareOn(c.Context(), programs, specs, gpu, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	if err := cmd.draw(c, programs, rows, len(specs)); err != nil {
		return err
	}
	switch {
	case cmd.JSON:
		return writeJSON(c.Out, rows)
	case cmd.CSV:
		return writeCSV(c.Out, rows)
	case cmd.Bench:
		return writeBenchmarks(c.Out, rows)
	}
	return writeTables(c.Out, programs, rows)
}

// alone refuses options that --why and --fit do not use.
func (cmd *compareCmd) alone() error {
	switch {
	case (cmd.Why || cmd.Fit) && (cmd.CSV || cmd.Bench || cmd.Pictures.Any()):
		return cli.Usage("--why and --fit print tables or --json: leave out --csv, --bench and pictures")
	case cmd.Fit && cmd.Capacity != 0:
		return cli.Usage("--fit looks for the --capacity: leave it out")
	}
	return nil
}

// distinct refuses pictures that would overwrite an input, or each other.
func (cmd *compareCmd) distinct() error {
	return cmd.Pictures.Check(append(slices.Clip(cmd.Files), cmd.Costs)...)
}

func writeJSON(w io.Writer, rows []bench.Row) error {
	return cli.WriteJSON(w, struct {
		Results []bench.Row     `json:"results"`
		Summary []bench.Summary `json:"summary"`
	}{rows, bench.Summarize(rows)})
}

func writeCSV(w io.Writer, rows []bench.Row) error {
	out := csv.NewWriter(w)
	out.Write([]string{
		"trace", "device", "allocator", "peak_allocated_bytes", "peak_reserved_bytes", "utilisation", "fragmentation",
		"mem_reduction_ratio", "driver_calls", "driver_ns", "driver_share", "retries", "oom_row", "oom_requested_bytes",
	})
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	ratio := func(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }
	for _, r := range rows {
		oomRow, oomSize := "", ""
		if r.OOM != nil {
			oomRow, oomSize = integer(r.OOM.Row), integer(r.OOM.Size)
		}
		out.Write([]string{
			r.Trace, integer(int64(r.Device)), r.Allocator, integer(r.PeakAllocated), integer(r.PeakReserved), ratio(r.Utilisation), ratio(r.Fragmentation),
			reduction(r.Reduction, "", ratio), integer(r.DriverCalls), integer(r.DriverNS), ratio(r.DriverShare), integer(r.Retries), oomRow, oomSize,
		})
	}
	out.Flush()
	return out.Error()
}

// writeTables prints a table for each program and, for several, one of the means.
func writeTables(w io.Writer, programs []*replay.Program, rows []bench.Row) error {
	width := len(rows) / len(programs)
	for i, p := range programs {
		_, err := fmt.Fprintf(w, "%s: %s in %s\n\n", p.Name, units.Count(p.Steps(), "request"), duration(p.DurationNS()))
		if err == nil {
			err = table(rows[i*width : (i+1)*width]).Write(w)
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		if err != nil {
			return err
		}
	}
	if len(programs) == 1 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%d programs, one for each GPU: geometric means, and the reduction of the sums of peak reserved\n\n", len(programs))
	if err != nil {
		return err
	}
	return summaryTable(bench.Summarize(rows)).Write(w)
}

func table(rows []bench.Row) *report.Table {
	t := &report.Table{Titles: []string{
		"allocator", "allocated", "reserved", "used", "lost", "vs torch", "calls", "driver", "of run", "retries", "",
	}}
	for _, r := range rows {
		t.Add(r.Allocator, units.Bytes(r.PeakAllocated).String(), units.Bytes(r.PeakReserved).String(),
			known(r.PeakReserved, r.Utilisation), known(r.PeakReserved, r.Fragmentation), reduction(r.Reduction, "-", change), strconv.FormatInt(r.DriverCalls, 10),
			duration(r.DriverNS), percent(r.DriverShare), strconv.FormatInt(r.Retries, 10), fate(r.OOM))
	}
	return t
}

func summaryTable(summaries []bench.Summary) *report.Table {
	t := &report.Table{Titles: []string{"allocator", "traces", "used", "reserved/torch", "sum vs torch", "of run", "OOM"}}
	for _, s := range summaries {
		t.Add(s.Allocator, strconv.Itoa(s.Traces), percent(s.Utilisation), fmt.Sprintf("%.3f", s.Reserved), change(s.Reduction),
			percent(s.DriverShare), strconv.Itoa(s.OOMs))
	}
	return t
}

func percent(x float64) string {
	if x > 10 {
		return ">1000%"
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}

// known prints a share of what was reserved, if anything was.
func known(reserved int64, share float64) string {
	if reserved == 0 {
		return "-"
	}
	return percent(share)
}

// change prints a reduction as a change with its sign.
func change(x float64) string {
	if text := fmt.Sprintf("%+.1f%%", -100*x); text != "-0.0%" && text != "+0.0%" {
		return text
	}
	return "0.0%"
}

// reduction prints a reduction, or unknown if there is none.
func reduction(x *float64, unknown string, print func(float64) string) string {
	if x == nil {
		return unknown
	}
	return print(*x)
}

func duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0fms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0fus", d.Seconds()*1e6)
}

func fate(oom *bench.OOM) string {
	if oom == nil {
		return ""
	}
	if oom.Row < 0 {
		return fmt.Sprintf("OOM before the first row: an arena of %s, %s reserved", units.Bytes(oom.Size), units.Bytes(oom.Reserved))
	}
	return fmt.Sprintf("OOM at row %d: %s asked, %s allocated, %s reserved", oom.Row,
		units.Bytes(oom.Size), units.Bytes(oom.Allocated), units.Bytes(oom.Reserved))
}
