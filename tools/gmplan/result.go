package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"gm/internal/cli"
	"gm/internal/dsa"
	"gm/internal/plan/layout"
	"gm/internal/report"
	"gm/internal/units"
)

// result is the layout that a search found for an arena.
type result struct {
	task     layout.Task
	layout   dsa.Layout
	capacity int64 // bytes; 0 for none
	took     time.Duration
}

// verdict is what a result proves.
type verdict string

const (
	optimal    verdict = "optimal"
	feasible   verdict = "feasible"
	fits       verdict = "fits"
	doesNotFit verdict = "does not fit" // proven
	noFitFound verdict = "no fit found"
)

func (r *result) verdict() verdict {
	switch {
	case r.capacity == 0 && r.layout.Optimal():
		return optimal
	case r.capacity == 0:
		return feasible
	case r.layout.Peak <= r.capacity:
		return fits
	case r.layout.Bound > r.capacity:
		return doesNotFit
	}
	return noFitFound
}

// layoutsOf returns the layouts of results.
func layoutsOf(results []result) []dsa.Layout {
	layouts := make([]dsa.Layout, len(results))
	for i := range results {
		layouts[i] = results[i].layout
	}
	return layouts
}

// gap returns the distance of the peak from the bound, as a fraction of the bound.
func gap(peak, bound int64) float64 {
	if bound <= 0 {
		return 0
	}
	return float64(peak-bound) / float64(bound)
}

// gapText returns the gap as text.
func gapText(peak, bound int64) string {
	switch g := 100 * gap(peak, bound); {
	case g == 0:
		return "0 %"
	case g < 0.01:
		return "<0.01 %"
	default:
		return fmt.Sprintf("%.2f %%", g)
	}
}

// summary says in a line what came out: a plan, and a lower bound in bytes of any plan's peak.
func summary(p *layout.Plan, bound int64) string {
	return fmt.Sprintf("%s: peak %s, bound %s, gap %s", p.Meta.Solver, units.Bytes(p.Meta.Peak), units.Bytes(bound), gapText(p.Meta.Peak, bound))
}

// misfit returns an error for the arenas that do not fit, or nil.
func misfit(results []result, limit time.Duration) error {
	var errs []error
	for i := range results {
		r := &results[i]
		name := arenaName(r.task.Arena)
		peak, bound, capacity := amounts(r.layout.Peak, r.layout.Bound, r.capacity)
		switch r.verdict() {
		case doesNotFit:
			errs = append(errs, fmt.Errorf("%s needs at least %s (lower bound), capacity %s: does not fit", name, bound, capacity))
		case noFitFound:
			errs = append(errs, fmt.Errorf("%s: no layout within %s was found in %s: best %s, lower bound %s",
				name, capacity, rounded(min(limit, r.took)), peak, bound))
		}
	}
	return errors.Join(errs...)
}

// rounded returns a duration without insignificant digits.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// amounts returns sizes as text, in bytes if the peak or the bound is close to the capacity.
func amounts(peak, bound, capacity int64) (peakText, boundText, capacityText string) {
	text := func(n int64) string { return units.Bytes(n).String() }
	if close := capacity / 1000; peak-capacity <= close || max(bound-capacity, capacity-bound) <= close {
		text = func(n int64) string { return fmt.Sprintf("%d bytes", n) }
	}
	return text(peak), text(bound), text(capacity)
}

// row is a result as JSON.
type row struct {
	Arena    string  `json:"arena"`
	Buffers  int     `json:"buffers"`
	Peak     int64   `json:"peak_bytes"`
	Bound    int64   `json:"lower_bound_bytes"`
	Gap      float64 `json:"gap"`
	Capacity int64   `json:"capacity_bytes,omitempty"`
	Verdict  verdict `json:"verdict"`
	Solver   string  `json:"solver"`
	SolveNS  int64   `json:"solve_ns"`
}

// printJSON prints the results.
func printJSON(w io.Writer, source string, results []result) error {
	rows := make([]row, len(results))
	for i := range results {
		r := &results[i]
		rows[i] = row{
			Arena: r.task.Arena, Buffers: r.task.Problem.Len(), Peak: r.layout.Peak, Bound: r.layout.Bound,
			Gap: gap(r.layout.Peak, r.layout.Bound), Capacity: r.capacity, Verdict: r.verdict(), Solver: r.layout.Method,
			SolveNS: r.took.Nanoseconds(),
		}
	}
	return cli.WriteJSON(w, struct {
		Source string `json:"source"`
		Arenas []row  `json:"arenas"`
	}{source, rows})
}

// printTable prints the results. There is no column for the name if the only arena has none.
func printTable(w io.Writer, results []result) error {
	named := len(results) != 1 || results[0].task.Arena != ""
	t := report.Table{Titles: []string{"buffers", "peak", "bytes", "bound", "gap", "verdict", "solver", "time"}}
	if named {
		t.Titles = append([]string{"arena"}, t.Titles...)
	}
	for i := range results {
		r := &results[i]
		l := &r.layout
		cells := []string{
			strconv.Itoa(r.task.Problem.Len()), units.Bytes(l.Peak).String(), strconv.FormatInt(l.Peak, 10),
			units.Bytes(l.Bound).String(), gapText(l.Peak, l.Bound), string(r.verdict()), l.Method, rounded(r.took).String(),
		}
		if named {
			cells = append([]string{r.task.Arena}, cells...)
		}
		t.Add(cells...)
	}
	return t.Write(w)
}
