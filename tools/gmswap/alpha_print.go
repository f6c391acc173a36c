package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gm/internal/report"
	"gm/internal/units"
)

// print prints what the closed form says, for people.
func (t *alphas) print(w io.Writer) error {
	var out strings.Builder
	host := "no limit of host memory"
	if t.Host > 0 {
		host = units.Bytes(t.Host).String() + " of host memory for each GPU"
	}
	gpus := fmt.Sprintf("on %d GPUs", t.GPUs)
	if t.GPUs == 1 {
		gpus = "on one GPU"
	}
	fmt.Fprintf(&out, "%s: %d layers %s, %s to the host, %s\n\n", report.Printable(t.Name), t.Layers, gpus, rateText(int64(t.Bandwidth)), host)
	table := &report.Table{Titles: []string{"seq", "layer runs", "saves", "by link", "by host", "alpha", "binds", "swapped", "recomputed"}}
	for i := range t.Rows {
		table.Add(t.Rows[i].cells(t.Host > 0)...)
	}
	if err := table.Write(&out); err != nil {
		return err
	}
	if t.Hides > 0 {
		fmt.Fprintf(&out, "\nfrom %s tokens on all copies of a layer hide behind the next one\n", count(t.Hides))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *alphaRow) cells(limited bool) []string {
	seq, byHost := "-", "-"
	if r.Tokens > 0 {
		seq = count(r.Tokens)
	}
	if limited {
		byHost = text(r.ByHost)
	}
	cells := []string{seq, timeText(time.Duration(r.ForwardNS)), units.Bytes(r.Saved).String(), text(r.ByBandwidth), byHost}
	if !r.Feasible {
		return append(cells, "-", r.Binds, "-", "-")
	}
	return append(cells, text(r.Alpha), r.Binds, units.Bytes(r.Swapped).String(), units.Bytes(r.Recomputed).String())
}
