package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gm/internal/bench"
	results "gm/internal/bench/ranks"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

// ranks compares allocators on the ranks of a job.
func (cmd *compareCmd) ranks(c *cli.Context, specs []bench.Spec) error {
	if cmd.CSV || cmd.Bench || cmd.Why || cmd.Fit || cmd.Pictures.Any() {
		return cli.Usage("%s is the folder of a job: --alloc, --capacity, --costs and --json go with it; for the rest name the trace of one rank", cmd.Files[0])
	}
	if len(cmd.Alloc) == 0 {
		specs = slices.DeleteFunc(specs, func(s bench.Spec) bool { return !slices.Contains(rankAllocators, s.Text) })
	}
	gpu, err := simulated(cmd.Capacity, cmd.Costs)
	if err != nil {
		return err
	}
	j, err := ranks.Open(cmd.Files[0])
	if err != nil {
		return err
	}
	progress := c.Progress("replay ranks", int64(len(j.Members)))
	t, err := results.Compare(c.Context(), j, specs, gpu, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	for _, problem := range j.Problems() {
		c.Warn("%s: %s", j.Folder, problem)
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, t)
	} else {
		err = writeRanks(c.Out, t, gpu.Capacity)
	}
	return errors.Join(err, j.Incomplete())
}

// rankAllocators are compared on the ranks of a job by default.
var rankAllocators = []string{"floor", "torch", "expandable", "stitch"}

// writeRanks prints what each rank reserves with each allocator, and which runs out of memory first.
func writeRanks(w io.Writer, t *results.Table, capacity int64) error {
	var text strings.Builder
	requests := ""
	switch {
	case t.Different > 1:
		requests = fmt.Sprintf(" with %d different sequences of requests", t.Different)
	case len(t.Ranks) > 1:
		requests = ", all with the same requests"
	}
	fmt.Fprintf(&text, "%s%s: peak reserved\n\n", units.Count(len(t.Ranks), "GPU"), requests)
	if err := rankRows(t).Write(&text); err != nil {
		return err
	}
	if len(t.Ranks) > 1 {
		text.WriteString("\n")
	}
	for i, f := range t.First {
		switch {
		case f == nil:
		case f.OOM != nil:
			fmt.Fprintf(&text, "%s: %s runs out first, %s after its start, of %d that do with %s: %s\n",
				t.Allocators[i], ranks.Name(f.Rank), duration(f.AfterNS), f.Failed, units.Bytes(capacity), fate(f.OOM))
		case len(t.Ranks) > 1:
			fmt.Fprintf(&text, "%s: %s would run out first, below %s\n", t.Allocators[i], ranks.Name(f.Rank), units.Bytes(f.Reserved))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// rankRows is a table in which ranks in sequence with equal results share a row.
func rankRows(t *results.Table) *report.Table {
	table := &report.Table{Titles: append([]string{"rank", "gpu", "peak live"}, t.Allocators...)}
	var last []string
	var of []int64
	flush := func() {
		if len(of) > 0 {
			table.Add(append([]string{ranks.Numbers(of)}, last...)...)
		}
	}
	for _, r := range t.Ranks {
		cells := []string{fmt.Sprint(r.Device), units.Bytes(r.Peak).String()}
		for _, result := range r.Results {
			text := units.Bytes(result.Reserved).String()
			if result.OOM != nil {
				text = "OOM"
			}
			cells = append(cells, text)
		}
		if !slices.Equal(cells, last) {
			flush()
			last, of = cells, nil
		}
		of = append(of, r.Rank)
	}
	flush()
	return table
}
