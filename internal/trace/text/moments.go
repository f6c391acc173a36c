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

// Moments prints what is live at the moments of most interest.
func Moments(w *strings.Builder, o *overview.Overview, all []*overview.Top) error {
	head(w, o)
	for _, top := range all {
		for _, m := range top.Moments {
			if err := showMoment(w, o, top, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// StackWidth is the width of a stack in a line, in characters.
const StackWidth = 68

func showMoment(w *strings.Builder, o *overview.Overview, top *overview.Top, m *overview.Moment) error {
	fmt.Fprintf(w, "\ndevice %d, %s\n", top.Device, map[string]string{"peak": "at the peak", "oom": "out of memory", "at": "at a moment"}[m.What])
	line(w, "at", "row %d, after %s", m.Row, after(o, m.TimeNS))
	if m.Failed != nil {
		showFailed(w, m.Failed)
	}
	live, flag := "allocated", "--stacks python` has them, or a snapshot with stacks"
	if top.Level == trace.LevelDriver.String() {
		live, flag = "obtained from the driver", "--stacks native` has them"
	}
	line(w, "live", "%s %s; blocks: %d", exact(m.Live), live, m.Blocks)
	switch {
	case m.Reserved >= m.Live && m.Reserved > 0:
		line(w, "reserved", "%s, of which %s hold no block", exact(m.Reserved), units.Bytes(m.Reserved-m.Live))
	case m.Reserved > 0:
		line(w, "reserved", "%s, less than what lives: not all blocks lie in segments", exact(m.Reserved))
	}
	if m.Blocks == 0 {
		return nil
	}
	stacks := groups("stack, the innermost frame first", m.Stacks, m, namesOf(m.Stacks).Of)
	if !m.HasStacks {
		line(w, "stacks", "%s", noStacks(top, flag))
		stacks = groups("size and stream", m.Requests, m, report.Printable)
	}
	tables := []*report.Table{stacks}
	if top.Level == trace.LevelDriver.String() {
		tables = append(tables, groups("kind", m.Kinds, m, kindName))
	} else {
		if len(m.Tags) < len(m.Rules) { // otherwise they would repeat the rules
			tables = append(tables, groups("tag", m.Tags, m, report.Printable))
		}
		tables = append(tables, groups("tag: the rule that named it", m.Rules, m, report.Printable), groups("stream", m.Streams, m, report.Printable))
	}
	return writeTables(w, append(tables, groups("size", m.Classes, m, report.Printable))...)
}

// noStacks says why what is live at a moment has no stacks; flag is what records them.
func noStacks(top *overview.Top, flag string) string {
	if top.HasStacks {
		return "none of what is live here; other allocations have one"
	}
	return "none in this trace; `gmtrace run " + flag
}

// kindName returns a tag of the driver's level in readable form.
func kindName(tag string) string {
	kind, by := trace.ParseDriverTag(tag)
	return account(string(kind), by)
}

// namesOf names the stacks of a table.
func namesOf(all []overview.Group) report.StackNames {
	var stacks []string
	for _, g := range all {
		stacks = append(stacks, g.Name)
	}
	return report.NewStackNames(stacks, StackWidth)
}

// showFailed prints the request that failed.
func showFailed(w *strings.Builder, f *overview.Failed) {
	if f.By != "" {
		kind, by := trace.ParseDriverTag(f.By)
		line(w, "refused", "%s of %s%s", units.Bytes(f.Size), account(string(kind), by), free(f.Free))
	} else {
		line(w, "OOM", "%s requested%s", units.Bytes(f.Size), free(f.Free))
	}
	if f.Stack != "" {
		line(w, "in", "%s", report.Stack(f.Stack, columns-titleWidth))
	}
}

// groups makes a table of groups. Its last row has the rest.
func groups(title string, all []overview.Group, m *overview.Moment, name func(string) string) *report.Table {
	t := &report.Table{Titles: []string{title, "bytes", "blocks", "share"}}
	bytes, blocks := m.Live, m.Blocks
	add := func(name string, b, n int64) {
		t.Add(name, units.Bytes(b).String(), strconv.FormatInt(n, 10), fmt.Sprintf("%.1f%%", 100*float64(b)/float64(m.Live)))
	}
	for _, g := range all {
		add(name(g.Name), g.Bytes, g.Blocks)
		bytes, blocks = bytes-g.Bytes, blocks-g.Blocks
	}
	if blocks > 0 {
		add("others", bytes, blocks)
	}
	return t
}
