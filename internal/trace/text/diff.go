package text

import (
	"fmt"
	"strconv"
	"strings"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/changes"
	"gm/internal/units"
)

// The most groups that are shown, and the least change of a group as a fraction of the first one's. JSON has all groups.
const (
	diffRows   = 6
	negligible = 100
)

// worthRows returns the changes that get a row of their own, the first ones of all.
func worthRows(all []changes.Change) []changes.Change {
	n := 0
	for n < min(len(all), diffRows) && all[n].Bytes() >= all[0].Bytes()/negligible {
		n++
	}
	if len(all) == n+1 { // a summary would take a row, too
		n++
	}
	return all[:n]
}

// Diff prints the changes between two traces or iterations.
func Diff(w *strings.Builder, d *changes.Diff) error {
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
	var leaks []changes.Leak
	for _, l := range d.Leaks {
		leaks = append(leaks, l.Leak)
	}
	names := leakNames(leaks)
	for i, l := range d.Leaks {
		fmt.Fprintf(w, "leak: %s\n", report.Printable(l.Trace+", "+leakLine(&leaks[i], names)))
	}
	return nil
}

func showSide(w *strings.Builder, title string, side *changes.Side) {
	text := side.Trace
	if side.Iteration != nil {
		text += ", iteration " + strconv.Itoa(*side.Iteration)
	}
	line(w, title, "%s: %s, %s", text, side.Source, units.Count(side.Rows, "row"))
}

func showDeviceDiff(w *strings.Builder, d *changes.Device) error {
	about := ""
	switch driver := d.Level == trace.LevelDriver.String(); {
	case d.Mixed && driver:
		about = ": A is what the framework allocated, B what was obtained from the driver"
	case d.Mixed:
		about = ": A is what was obtained from the driver, B what the framework allocated"
	case driver:
		about = ", obtained from the driver"
	}
	fmt.Fprintf(w, "\ndevice %d%s\n", d.Device, about)
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
	names := diffNames(d)
	same := true
	for _, part := range []struct {
		when string
		c    *changes.Comparison
	}{{"at the peak", &d.Peak}, {"at the end", &d.End}, {made, &d.Made}} {
		if len(part.c.Groups)+len(part.c.Classes) > 0 {
			same = false
			if err := showComparison(w, d, part.when, part.c, names); err != nil {
				return err
			}
		}
	}
	if same {
		w.WriteString("\nno group of allocations changed\n")
	}
	return nil
}

// showComparison prints the groups that changed and, if these are not stacks, the size classes.
func showComparison(w *strings.Builder, d *changes.Device, when string, c *changes.Comparison, names report.StackNames) error {
	if d.HasStacks {
		return writeTables(w, changesTable(when+": stack, the innermost frame first", c.Groups, names.Of))
	}
	title, name := "size and stream", report.Printable
	if d.Mixed || d.Level == trace.LevelDriver.String() {
		title, name = "kind", kindName
	}
	return writeTables(w, changesTable(when+": "+title, c.Groups, name), changesTable(when+": size", c.Classes, report.Printable))
}

// diffStackWidth is the width of a stack in a line, in characters.
const diffStackWidth = 56

// diffNames names the stacks that have rows, the same in all tables of a device.
func diffNames(d *changes.Device) report.StackNames {
	var stacks []string
	if d.HasStacks {
		for _, c := range []*changes.Comparison{&d.Peak, &d.End, &d.Made} {
			for _, change := range worthRows(c.Groups) {
				if change.Name != changes.Before && change.Name != changes.Stackless {
					stacks = append(stacks, change.Name)
				}
			}
		}
	}
	return report.NewStackNames(stacks, diffStackWidth)
}

func changesTable(title string, all []changes.Change, name func(string) string) *report.Table {
	t := &report.Table{Titles: []string{title, "A", "B", "change", "blocks", "what"}}
	add := func(name string, a, b, blocks int64, what string) {
		t.Add(name, units.Bytes(a).String(), units.Bytes(b).String(), signed(b-a), fmt.Sprintf("%+d", blocks), what)
	}
	shown := worthRows(all)
	for _, c := range shown {
		add(name(c.Name), c.A, c.B, c.BBlocks-c.ABlocks, c.What)
	}
	if rest := all[len(shown):]; len(rest) > 0 {
		var a, b, blocks int64
		for _, c := range rest {
			a, b, blocks = a+c.A, b+c.B, blocks+c.BBlocks-c.ABlocks
		}
		add(units.Count(len(rest), "other"), a, b, blocks, "")
	}
	return t
}

// signed formats a change with its sign.
func signed(bytes int64) string {
	if bytes > 0 {
		return "+" + units.Bytes(bytes).String()
	}
	return units.Bytes(bytes).String()
}
