package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gm/internal/capture/live"
	"gm/internal/report"
	"gm/internal/units"
)

// layout is a page under construction.
type layout struct {
	width int
	lines []pageLine
	bar   int // index of the last line that begins a part
}

func (l *layout) add(text string) { l.lines = append(l.lines, pageLine{text: cut(text, l.width)}) }

func (l *layout) blank() { l.lines = append(l.lines, pageLine{}) }

// addBoth adds a line with one text at each end. The right one must fit.
func (l *layout) addBoth(left, right string) {
	room := l.width - utf8.RuneCountInString(right) - 2
	left = cut(left, room)
	l.add(left + strings.Repeat(" ", max(room-utf8.RuneCountInString(left), 0)+2) + right)
}

// cut removes the lines beyond height.
func (l *layout) cut(height int) { l.lines = l.lines[:min(len(l.lines), max(height, 0))] }

// addTable adds an empty line and a table.
func (l *layout) addTable(t *report.Table) {
	l.blank()
	l.bar = len(l.lines)
	var text strings.Builder
	_ = t.Write(&text) // a builder never fails
	for line := range strings.Lines(text.String()) {
		l.add(strings.TrimSuffix(line, "\n"))
	}
	l.lines[l.bar].bar = true
}

// addNamed adds a table with a last column of names, which are cut at the end of the line.
func (l *layout) addNamed(t *report.Table, title string, names []string) {
	l.addTable(t)
	texts := append([]string{title}, names...)
	widest := 0
	for i := range texts {
		widest = max(widest, utf8.RuneCountInString(l.lines[l.bar+i].text))
	}
	for i, text := range texts {
		line := &l.lines[l.bar+i].text
		*line = cut(fmt.Sprintf("%-*s  %s", widest, *line, text), l.width)
	}
}

func cutLines(lines []pageLine, width int) []pageLine {
	for i := range lines {
		lines[i].text = cut(lines[i].text, width)
	}
	return lines
}

// size returns bytes as text, "" for 0.
func size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return units.Bytes(bytes).String()
}

// addDevices adds a table of the levels on each device, with at most the given rows.
func addDevices(l *layout, p *live.Process, rows int) {
	t := report.Table{Titles: []string{"GPU", "live", "peak", "reserved", "allocs/s", "card used", "process"}}
	for _, d := range p.Devices {
		if f := d.Framework; f != nil {
			t.Add(fmt.Sprintf("%d tensors%s", d.Ordinal, refused(f)), units.Bytes(f.Live).String(), units.Bytes(f.Peak).String(),
				units.Bytes(f.Reserved).String(), rateText(f.Rate), "", "")
		}
		if g := d.Driver; g != nil {
			t.Add(fmt.Sprintf("%d driver%s", d.Ordinal, refused(g)), units.Bytes(g.Live).String(), units.Bytes(g.Peak).String(), "",
				rateText(g.Rate), size(d.Used), size(d.Process))
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	t.Rows = t.Rows[:min(len(t.Rows), rows)]
	l.addTable(&t)
}

// refused returns text with the number of failed requests, "" for none.
func refused(level *live.Level) string {
	if level.Refused == 0 {
		return ""
	}
	return fmt.Sprintf(", OOM %d", level.Refused)
}

func rateText(perSecond float64) string {
	if perSecond > 0 && perSecond < 9.95 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
}

// The keys of the tables.
const (
	byStack  = 'k'
	byStream = 's'
	byTag    = 't'
)

// addGroups adds the chosen table, in at most the given lines.
func (p *page) addGroups(l *layout, q *live.Process, lines int) {
	const head = 2 // an empty line and the titles
	table := p.table
	stacks := groupsOf(q, stackGroups)
	if table == 0 {
		table = map[bool]byte{true: byStack, false: byTag}[slices.ContainsFunc(stacks, named)]
	}
	title, groups, short := "stack, the innermost frame first", stacks, report.Stack
	switch table {
	case byStream:
		title, groups, short = "stream", groupsOf(q, streamGroups), cut
	case byTag:
		title, groups, short = "device memory", groupsOf(q, tagGroups), cut
	}
	t := report.Table{Titles: []string{"live", "peak", "blocks"}}
	for _, g := range groups[:max(min(len(groups), lines-head), 0)] {
		t.Add(units.Bytes(g.Live).String(), units.Bytes(g.Peak).String(), strconv.FormatInt(g.Blocks, 10))
	}
	l.addGroupTable(&t, title, groups, func(g deviceGroup, width int) string { return g.label(len(q.Devices) > 1, short, width) })
	if len(groups) == 0 {
		l.blank()
		l.add(title + ": none")
	}
	if table == byStack && !slices.ContainsFunc(stacks, named) {
		l.add("no stacks are recorded: gmtrace run --stacks python or both records them")
	}
}

// addGroupTable adds a table whose first column, the names of groups, fills the width that the others leave.
func (l *layout) addGroupTable(t *report.Table, title string, groups []deviceGroup, label func(deviceGroup, int) string) {
	if len(t.Rows) == 0 {
		return
	}
	width := l.width
	for i, of := range t.Titles {
		widest := len(of)
		for _, row := range t.Rows {
			widest = max(widest, len(row[i]))
		}
		width -= widest + 2
	}
	width = max(width, 10)
	whole := report.Table{Titles: append([]string{pad(title, width)}, t.Titles...)}
	for i, row := range t.Rows {
		whole.Add(append([]string{pad(label(groups[i], width), width)}, row...)...)
	}
	l.addTable(&whole)
}

func pad(text string, width int) string { return fmt.Sprintf("%-*s", width, cut(text, width)) }

// deviceGroup is a group on one device.
type deviceGroup struct {
	live.Group
	device int32
}

func named(g deviceGroup) bool { return g.Name != "" }

// label returns the name of a group in at most width characters.
func (g deviceGroup) label(devices bool, short func(string, int) string, width int) string {
	prefix := ""
	if devices {
		prefix = fmt.Sprintf("%d: ", g.device)
	}
	if g.Beside {
		prefix += "beside it: "
	}
	return prefix + short(g.Name, width-len(prefix))
}

// groupsOf returns the groups of all devices, the largest first, and those beside the device memory last.
func groupsOf(p *live.Process, of func(*live.Device) []live.Group) []deviceGroup {
	var all []deviceGroup
	for i := range p.Devices {
		for _, g := range of(&p.Devices[i]) {
			all = append(all, deviceGroup{g, p.Devices[i].Ordinal})
		}
	}
	slices.SortStableFunc(all, func(a, b deviceGroup) int {
		if a.Beside != b.Beside {
			return map[bool]int{true: 1, false: -1}[a.Beside]
		}
		return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(b.Peak, a.Peak))
	})
	return all
}

// stackGroups returns the stacks of tensors, or of driver calls if only those are recorded.
func stackGroups(d *live.Device) []live.Group {
	known := func(g live.Group) bool { return g.Name != "" }
	if d.Driver != nil && slices.ContainsFunc(d.Driver.Stacks, known) &&
		(d.Framework == nil || !slices.ContainsFunc(d.Framework.Stacks, known)) {
		return d.Driver.Stacks
	}
	if d.Framework == nil {
		return nil
	}
	return d.Framework.Stacks
}

func streamGroups(d *live.Device) []live.Group {
	if d.Framework != nil {
		return d.Framework.Streams
	}
	return d.Driver.Streams
}

func tagGroups(d *live.Device) []live.Group {
	if d.Driver == nil {
		return nil
	}
	return d.Driver.Tags
}
