package text

import (
	"fmt"
	"strconv"
	"strings"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// showDriver prints the memory of a device obtained from the driver, compared with NVML's measurements and the framework's segments.
func showDriver(w *strings.Builder, o *overview.Overview, d *overview.Device) error {
	given := d.Driver
	if d.Framework() {
		w.WriteString("\n")
	}
	if len(given.Accounts) > 0 {
		line(w, "driver gave", "%s of device memory at its peak, row %d, after %s", exact(given.Peak), given.PeakRow, after(o, given.PeakNS))
	}
	for i, r := range given.Refusals {
		if i == maxFailures {
			line(w, "refused", "and %d more, see --json", len(given.Refusals)-i)
			break
		}
		line(w, "refused", "at row %d: %s of %s%s", r.Row, units.Bytes(r.Size), account(r.Kind, r.By), free(r.Free))
	}
	if m := given.Mappings; m.Maps > 0 {
		line(w, "mappings", "%d mapped, %d unmapped; %s at most, %s at the end", m.Maps, m.Unmaps, units.Bytes(m.Most), units.Bytes(m.AtEnd))
	}
	if r := given.Reservation; r != nil {
		line(w, "framework", "reserved %s at its peak, the driver gave pytorch %s: %s", units.Bytes(r.Framework), units.Bytes(r.Driver),
			difference(r.Driver-r.Framework, "outside of its segments"))
	}
	tables := accounts(given)
	if r := given.Reconciliation; r != nil {
		line(w, "NVML", "samples of the %s: %d, the highest at row %d, after %s", r.Measured, r.Samples, r.Row, after(o, r.TimeNS))
		tables = append(tables, reconciliation(r))
	} else {
		line(w, "NVML", "no samples: nothing to compare with")
	}
	if err := writeTables(w, tables...); err != nil {
		return err
	}
	if !d.Framework() && len(given.Accounts) > 0 {
		showCurve(w, given.Curve(o.StartNS, o.EndNS, graphWidth), given.Peak, "obtained")
	}
	return nil
}

// free says how much memory the device had free; not every refusal records it.
func free(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %s free on the device", units.Bytes(bytes))
}

// difference describes by how many bytes one account exceeds another.
func difference(bytes int64, more string) string {
	switch {
	case bytes == 0:
		return "the same"
	case bytes < 0:
		return units.Bytes(-bytes).String() + " fewer"
	}
	return units.Bytes(bytes).String() + " " + more
}

// account names the memory of a kind that a library requested.
func account(kind, by string) string {
	if by == "" {
		return kind
	}
	return kind + " by " + by
}

// accounts prints who obtained memory: first the parts of the device memory, then other memory.
func accounts(given *overview.Driver) []*report.Table {
	titles := []string{"at the peak", "at the end", "at most", "allocs"}
	inside := report.Table{Titles: append([]string{"device memory"}, titles...)}
	beside := report.Table{Titles: append([]string{"beside it"}, titles...)}
	for _, a := range given.Accounts {
		table, name := &inside, account(a.Kind, a.By)
		if !a.Counted {
			table = &beside
			if a.Kind == string(trace.KindPool) {
				name = account("in pools", a.By)
			}
		}
		table.Add(name, units.Bytes(a.AtPeak).String(), units.Bytes(a.AtEnd).String(), units.Bytes(a.Most).String(),
			strconv.FormatInt(a.Allocs, 10))
	}
	if len(inside.Rows) > 1 {
		inside.Add("all", units.Bytes(given.Peak).String(), units.Bytes(given.End).String(), units.Bytes(given.Peak).String(), "")
	}
	return []*report.Table{&inside, &beside}
}

// reconciliation compares NVML's measurements with the traced memory.
func reconciliation(r *overview.Reconciliation) *report.Table {
	t := &report.Table{Titles: []string{"measured by NVML", "size", "bytes", "share"}}
	add := func(name string, bytes int64, share string) {
		t.Add(name, units.Bytes(bytes).String(), strconv.FormatInt(bytes, 10), share)
	}
	percent := func(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }
	whole, rest := "used by the process", "  not explained"
	if r.Measured == string(trace.KindCard) {
		whole, rest = "used on the card", "  by others, the driver, or not explained"
	}
	add(whole, r.Used, "")
	add("  traced", r.Traced, percent(1-r.Share))
	add(rest, r.Unexplained, percent(r.Share))
	if r.Card > 0 {
		add("used on the card", r.Card, "")
		add("  by others and the driver", r.Others, "")
	}
	return t
}
