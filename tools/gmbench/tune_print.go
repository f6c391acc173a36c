package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"gm/internal/bench/tuning"
	"gm/internal/report"
	"gm/internal/units"
)

// tuneCount is the progress of a search.
type tuneCount struct {
	programs int
	done     atomic.Int64
}

// String describes the progress.
func (n *tuneCount) String() string {
	return fmt.Sprintf("tune: %s tried on %s", units.Count(n.done.Load(), "setting"), units.Count(n.programs, "trace"))
}

// write prints the outcomes and, in the last lines, what to set.
func (t *tuned) write(w io.Writer) error {
	requests := 0
	for _, j := range t.jobs {
		requests += j.Steps()
	}
	fmt.Fprintf(w, "%s, %s, at most %s live: %s tried\n", units.Count(len(t.jobs), "trace"), units.Count(requests, "request"),
		units.Bytes(t.Live), units.Count(t.Tried, "setting"))
	for _, line := range t.said {
		fmt.Fprintln(w, report.Printable(line))
	}
	fmt.Fprintln(w)
	if err := t.table().Write(w); err != nil {
		return err
	}
	if len(t.jobs) > 1 {
		fmt.Fprintln(w)
		if err := t.byTrace().Write(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", t.advice())
	return err
}

// rows returns the best outcomes, and those that they are compared with.
func (t *tuned) rows() []*tuning.Outcome {
	rows := slices.Clone(t.Best)
	for _, o := range []*tuning.Outcome{t.Default, t.Expandable, t.Recorded} {
		if o != nil && !slices.Contains(rows, o) {
			rows = append(rows, o)
		}
	}
	return rows
}

func (t *tuned) table() *report.Table {
	table := &report.Table{Titles: []string{"settings", "reserved", "vs default", "calls", "driver", "of run", "retries", ""}}
	for _, o := range t.rows() {
		change := "-"
		if o.OOMs == 0 && t.Default.OOMs == 0 {
			change = versus(o.Peak, t.Default.Peak)
		}
		table.Add(t.name(o), units.Bytes(o.Peak).String(), change, strconv.FormatInt(o.Calls, 10), duration(o.DriverNS),
			percent(t.share(o)), strconv.FormatInt(o.Retries, 10), t.failures(o))
	}
	return table
}

func (t *tuned) byTrace() *report.Table {
	table := &report.Table{Titles: []string{"trace", "default", "best", "vs default"}}
	for i, j := range t.jobs {
		standard, best := t.Default.Peaks[i], t.Best[0].Peaks[i]
		table.Add(j.Name, units.Bytes(standard).String(), units.Bytes(best).String(), versus(best, standard))
	}
	return table
}

// name returns the settings of an outcome, in words where they have a name.
func (t *tuned) name(o *tuning.Outcome) string {
	name := orDefault(o.Setting)
	if o == t.Recorded {
		name += " (as recorded)"
	}
	return name
}

func orDefault(s tuning.Setting) string {
	if s == tuning.Default() {
		return "(default)"
	}
	return s.String()
}

// share returns the driver time of an outcome as a share of the time that the job ran.
func (t *tuned) share(o *tuning.Outcome) float64 {
	var run int64
	for _, j := range t.jobs {
		run += j.DurationNS()
	}
	if run == 0 {
		return 0
	}
	return float64(o.DriverNS) / float64(run)
}

func (t *tuned) failures(o *tuning.Outcome) string {
	switch {
	case o.OOMs == 0:
		return ""
	case len(t.jobs) == 1:
		return "OOM"
	}
	return fmt.Sprintf("OOM in %d of %d", o.OOMs, len(t.jobs))
}

// advice says what to set, and what that saves and costs.
func (t *tuned) advice() string {
	best := t.Best[0]
	if best.OOMs > 0 {
		return "No setting helps."
	}
	if best == t.Default {
		return fmt.Sprintf("PyTorch's default is best: leave %s unset. It reserves %s at the peak, with %s.", variable,
			units.Bytes(best.Peak), units.Count(best.Retries, "retry"))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Predicted: %s reserved at the peak, with %s; ", units.Bytes(best.Peak), units.Count(best.Retries, "retry"))
	if t.Default.OOMs > 0 {
		text.WriteString("the default runs out of memory.\n")
	} else {
		fmt.Fprintf(&text, "the default reserves %s, with %s.\n", units.Bytes(t.Default.Peak), units.Count(t.Default.Retries, "retry"))
		fmt.Fprintf(&text, "Cost: %+d calls of the driver and %s in all, %s of the run.\n", best.Calls-t.Default.Calls,
			signed(best.DriverNS-t.Default.DriverNS), percent(t.share(best)-t.share(t.Default)))
	}
	if best.Setting.GCThreshold > 0 {
		text.WriteString("garbage_collection_threshold has an effect only after torch.cuda.set_per_process_memory_fraction(" + t.fraction() + ").\n")
	}
	if t.Older.Setting != best.Setting && best.Setting.LargeSegment != t.Default.Setting.LargeSegment {
		fmt.Fprintf(&text, "PyTorch before 2.11 does not know large_segment_size_mb. Without it: %s for %s.\n",
			units.Bytes(t.Older.Peak), orDefault(t.Older.Setting))
	}
	fmt.Fprintf(&text, "\nexport %s=%s", variable, quoted(best.Setting.String()))
	return text.String()
}

// fraction returns the share of a GPU that the capacity is.
func (t *tuned) fraction() string {
	if t.room() == 0 {
		return "FRACTION"
	}
	return units.Bytes(t.room()).String() + " / memory of the GPU"
}

// quoted quotes a text that a shell would interpret.
func quoted(text string) string {
	if strings.ContainsAny(text, "[]>") {
		return "'" + text + "'"
	}
	return text
}

func signed(ns int64) string {
	if ns < 0 {
		return "-" + duration(-ns)
	}
	return "+" + duration(ns)
}

// versus prints the change from another size to a size.
func versus(size, other int64) string {
	if other == 0 {
		return "-"
	}
	return change(1 - float64(size)/float64(other))
}
