package main

import (
	"fmt"
	"strconv"
	"strings"

	"gm/internal/changes"
	"gm/internal/report"
	"gm/internal/units"
)

// diffRows is how many of the groups that changed are shown.
const diffRows = 12

func showDiff(w *strings.Builder, d *diff) error {
	showSide(w, "A", &d.A)
	showSide(w, "B", &d.B)
	for _, device := range d.Devices {
		if err := showDeviceDiff(w, device); err != nil {
			return err
		}
	}
	if len(d.Leaks) > 0 {
		w.WriteString("\n")
	}
	for _, l := range d.Leaks {
		fmt.Fprintf(w, "leak: %s\n", report.Printable(leakLine(&l)))
	}
	return nil
}

func showSide(w *strings.Builder, title string, side *diffSide) {
	text := side.Trace
	if side.Iteration != nil {
		text += ", iteration " + strconv.Itoa(*side.Iteration)
	}
	line(w, title, "%s: %s, %d rows", text, side.Source, side.Rows)
}

func showDeviceDiff(w *strings.Builder, d *changes.Device) error {
	fmt.Fprintf(w, "\ndevice %d", d.Device)
	if d.Level == "driver" {
		w.WriteString(", obtained from the driver")
	}
	w.WriteString("\n")
	made := "allocated"
	if d.Each {
		made = "allocated in an iteration"
	}
	totals := &report.Table{Titles: []string{"", "A", "B", "change"}}
	add := func(name string, p changes.Pair) {
		totals.Add(name, units.Bytes(p.A).String(), units.Bytes(p.B).String(), signed(p.B-p.A))
	}
	add("live at the peak", d.Peak.Pair)
	add("live at the end", d.End.Pair)
	if d.Reserved.A > 0 || d.Reserved.B > 0 {
		add("reserved at most", d.Reserved)
	}
	add(made, d.Made.Pair)
	if err := totals.Write(w); err != nil {
		return err
	}
	same := true
	for _, part := range []struct {
		when string
		c    *changes.Comparison
	}{{"at the peak", &d.Peak}, {"at the end", &d.End}, {made, &d.Made}} {
		if len(part.c.Groups)+len(part.c.Classes) > 0 {
			same = false
			if err := showComparison(w, d, part.when, part.c); err != nil {
				return err
			}
		}
	}
	if same {
		w.WriteString("\nno group of allocations changed\n")
	}
	return nil
}

func showComparison(w *strings.Builder, d *changes.Device, when string, c *changes.Comparison) error {
	title, name := "size and stream", report.Printable
	switch {
	case d.HasStacks:
		title, name = "stack, the innermost frame first", stackName
	case d.Level == "driver":
		title = "kind"
	}
	return writeTables(w, changesTable(when+": "+title, c.Groups, name), changesTable(when+": size", c.Classes, report.Printable))
}

// diffStackWidth is how many characters of a line a stack has.
const diffStackWidth = 56

// stackName shortens a stack, but not what stands for none.
func stackName(name string) string {
	if name == changes.Before || name == changes.Stackless {
		return name
	}
	return report.Stack(name, diffStackWidth)
}

func changesTable(title string, all []changes.Change, name func(string) string) *report.Table {
	t := &report.Table{Titles: []string{title, "A", "B", "change", "blocks", "what"}}
	add := func(name string, a, b, blocks int64, what string) {
		t.Add(name, units.Bytes(a).String(), units.Bytes(b).String(), signed(b-a), fmt.Sprintf("%+d", blocks), what)
	}
	for _, c := range all[:min(len(all), diffRows)] {
		add(name(c.Name), c.A, c.B, c.BBlocks-c.ABlocks, c.What)
	}
	if len(all) > diffRows {
		var a, b, blocks int64
		for _, c := range all[diffRows:] {
			a, b, blocks = a+c.A, b+c.B, blocks+c.BBlocks-c.ABlocks
		}
		add(fmt.Sprintf("%d others", len(all)-diffRows), a, b, blocks, "")
	}
	return t
}

// signed returns a change as people read it.
func signed(bytes int64) string {
	if bytes > 0 {
		return "+" + units.Bytes(bytes).String()
	}
	return units.Bytes(bytes).String()
}

func leakLine(l *diffLeak) string {
	text := fmt.Sprintf("%s, device %d: %s an iteration, growing in %d of %d", l.Trace, l.Device, units.Bytes(l.Each), l.Grew, l.Of)
	switch {
	case l.Size > 0:
		text += fmt.Sprintf(", in blocks of %s", units.Bytes(l.Size))
	case l.Stack == "" && l.Stream < 0:
		text += ", in blocks of many sizes"
	default:
		text += ", in blocks of different sizes"
	}
	if l.Stream >= 0 {
		text += fmt.Sprintf(" on stream %d", l.Stream)
	}
	if l.Stack != "" {
		text += ": " + report.Stack(l.Stack, columns)
	}
	return text
}
