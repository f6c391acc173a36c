package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"gm/internal/bench/live"
	"gm/internal/bench/replay"
	"gm/internal/report"
	"gm/internal/units"
)

func (cmd *replayCmd) print(w io.Writer, runs []liveRun) error {
	if cmd.JSON {
		return writeReplays(w, runs, cmd.Histogram)
	}
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(r liveRun) bool { return r.program != runs[0].program })
		if n < 0 {
			n = len(runs)
		}
		if err := cmd.printProgram(w, runs[:n]); err != nil {
			return err
		}
		runs = runs[n:]
	}
	return nil
}

// printProgram prints the tables of one program.
func (cmd *replayCmd) printProgram(w io.Writer, runs []liveRun) error {
	p := runs[0].program
	if _, err := fmt.Fprintf(w, "%s: %s, on %s\n", p.Name, units.Count(p.Steps(), "request"), runs[0].target.name); err != nil {
		return err
	}
	tables := []*report.Table{memoryTable(runs), latencyTable(runs), callTable(runs)}
	if cmd.Histogram {
		tables = append(tables, histogramTable(runs))
	}
	if runs[0].options.Check != live.CheckNothing {
		tables = append(tables, checkTable(runs))
	}
	for _, t := range tables {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

func memoryTable(runs []liveRun) *report.Table {
	t := &report.Table{Titles: []string{
		"allocator", "allocated", "reserved", "in use", "utilisation", "requests", "calls", "driver", "modelled", "ratio", "",
	}}
	for i := range runs {
		r := &runs[i]
		total, size := r.Account.Total(), func(n int64) string { return units.Bytes(n).String() }
		used := "-"
		if share, ok := r.utilisation(); ok {
			used = fmt.Sprintf("%.4f", share)
		}
		t.Add(r.alloc, size(r.Stats.PeakAllocated), size(r.Stats.PeakReserved), size(r.PeakInUse), used, number(r.requests()),
			number(r.Account.MemoryCalls()), r.measured(total), brief(total.Modelled), r.ratio(total), outcome(r.OOM))
	}
	return t
}

func latencyTable(runs []liveRun) *report.Table {
	t := &report.Table{Titles: []string{"allocator", "malloc p50", "p99", "p99.9", "max", "free p50", "p99", "p99.9", "max"}}
	for i := range runs {
		m, f := runs[i].Malloc.Summary(), runs[i].Free.Summary()
		t.Add(runs[i].alloc, brief(m.P50), brief(m.P99), brief(m.P999), brief(m.Max), brief(f.P50), brief(f.P99), brief(f.P999), brief(f.Max))
	}
	return t
}

func callTable(runs []liveRun) *report.Table {
	t := &report.Table{Titles: []string{"allocator", "call", "calls", "measured", "modelled", "ratio"}}
	for i := range runs {
		r := &runs[i]
		for call, u := range r.Account {
			if u.Calls == 0 {
				continue
			}
			modelled := "-"
			if live.Call(call).Modelled() {
				modelled = brief(u.Modelled)
			}
			t.Add(r.alloc, live.Call(call).String(), number(u.Calls), r.measured(u), modelled, r.ratio(u))
		}
	}
	return t
}

// histogramTable has a column for the mallocs and the frees of each run.
func histogramTable(runs []liveRun) *report.Table {
	t := &report.Table{Titles: []string{"from"}}
	rows := map[time.Duration][]int64{}
	for i := range runs {
		t.Titles = append(t.Titles, runs[i].alloc+" malloc", "free")
		for k, l := range []live.Latencies{runs[i].Malloc, runs[i].Free} {
			for _, b := range l.Histogram() {
				if rows[b.From] == nil {
					rows[b.From] = make([]int64, 2*len(runs))
				}
				rows[b.From][2*i+k] = b.Count
			}
		}
	}
	var all []time.Duration
	for from := range rows {
		all = append(all, from)
	}
	slices.Sort(all)
	for _, from := range all {
		cells := []string{from.String()}
		for _, n := range rows[from] {
			cells = append(cells, number(n))
		}
		t.Add(cells...)
	}
	return t
}

func checkTable(runs []liveRun) *report.Table {
	t := &report.Table{Titles: []string{"allocator", "tensors", "read back", "words", "wrong"}}
	for i := range runs {
		r := &runs[i]
		t.Add(r.alloc, strconv.Itoa(len(r.Malloc)), number(r.Checked.Tensors), number(r.Checked.Words), number(r.Checked.Wrong))
	}
	return t
}

func (r *liveRun) requests() int64 { return int64(len(r.Malloc) + len(r.Free)) }

// utilisation returns the share of the peak that was reserved, if any, that was handed out at its own peak.
func (r *liveRun) utilisation() (float64, bool) {
	if r.Stats.PeakReserved == 0 {
		return 0, false
	}
	return float64(r.Stats.PeakAllocated) / float64(r.Stats.PeakReserved), true
}

// measured prints a time that was measured, which on a simulated GPU nothing is.
func (r *liveRun) measured(u live.Usage) string {
	if r.target.sim {
		return "-"
	}
	return brief(u.Measured)
}

// ratio prints modelled time in parts of measured time, if there are both.
func (r *liveRun) ratio(u live.Usage) string {
	share, ok := r.modelledShare(u)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", share)
}

func (r *liveRun) modelledShare(u live.Usage) (float64, bool) {
	if r.target.sim || u.Measured == 0 || u.Modelled == 0 {
		return 0, false
	}
	return float64(u.Modelled) / float64(u.Measured), true
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// brief prints a time with three digits.
func brief(d time.Duration) string {
	for unit := time.Nanosecond; unit < time.Minute; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

func outcome(oom *replay.OOM) string {
	if oom == nil {
		return ""
	}
	where := "before the first row: an arena of"
	if oom.Row >= 0 {
		where = fmt.Sprintf("at row %d:", oom.Row)
	}
	return fmt.Sprintf("OOM %s %s asked, %s allocated, %s reserved", where,
		units.Bytes(oom.Size), units.Bytes(oom.Allocated), units.Bytes(oom.Reserved))
}
