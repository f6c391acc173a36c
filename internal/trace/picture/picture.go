// Package picture draws traces: live bytes over time, and their addresses.
package picture

import (
	"fmt"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
	"gm/internal/units"
)

// The length of a stack in a picture, in characters, and how many stacks are candidates for a colour of their own.
const (
	nameWidth   = 40
	drawnStacks = 64
)

// Read returns the pictures of all devices of a trace, in which colours stand for tags or for stacks.
func Read(source *column.Source, o *overview.Overview, labels *tags.Tags, byStack bool) ([]report.Timeline, error) {
	tops, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Top, error) {
		return overview.ReadTop(r, o, overview.Look{Groups: drawnStacks, Tags: labels})
	})
	if err != nil {
		return nil, err
	}
	split := overview.ByTag(labels, tops)
	if byStack {
		split = overview.ByStack(tops, func(folded string) string { return report.Stack(folded, nameWidth) })
	}
	frames, err := trace.ReadSource(source, func(r *trace.Reader) (*overview.Frames, error) { return overview.ReadFrames(r, o) })
	if err != nil {
		return nil, err
	}
	lines, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Timeline, error) { return frames.Read(r, split) })
	if err != nil {
		return nil, err
	}
	moments, err := trace.ReadSource(source, func(r *trace.Reader) (map[int64]int64, error) { return timesOf(r, rowsOfMarks(o)) })
	if err != nil {
		return nil, err
	}
	pictures := make([]report.Timeline, len(lines))
	for i, l := range lines {
		pictures[i] = picture(o, l)
		pictures[i].Marks = marks(o, l, moments)
	}
	return pictures, nil
}

// picture returns the picture of a device.
func picture(o *overview.Overview, l *overview.Timeline) report.Timeline {
	t := report.Timeline{Title: title(o, l), Seconds: float64(l.EndNS-l.StartNS) / 1e9, Limit: o.Meta.Capacity}
	if t.Seconds == 0 {
		t.Seconds = 1 // a moment is drawn as a second
	}
	rest := len(l.Names) - 1
	for i, color := range colors(l.Names[:rest]) {
		t.Areas = append(t.Areas, report.Area{Name: l.Names[i], Bytes: l.Bytes[i], Color: color})
	}
	t.Areas = append(t.Areas, report.Area{Name: l.Names[rest], Bytes: l.Bytes[rest], Rest: true})
	for _, held := range l.Held {
		if held > 0 {
			t.Held = l.Held
		}
	}
	if m := l.Map; m != nil {
		t.Map = &report.AddressMap{
			Bytes: m.Bytes, Rows: overview.MapRows,
			Held: func(column, row int) uint8 { return m.Held[column*overview.MapRows+row] },
			Part: func(column, row, area int) uint8 { return m.Parts[(column*overview.MapRows+row)*len(l.Names)+area] },
		}
	}
	return t
}

// colors returns the numbers of the colours of names. Derived tags have the same colours in all pictures, also where they are guesses.
func colors(names []string) []int {
	derived := tags.Derived()
	taken := make([]bool, report.AreaColors)
	numbers := make([]int, len(names))
	for i, name := range names {
		if numbers[i] = slices.Index(derived, tags.TagOf(name)); numbers[i] >= 0 {
			taken[numbers[i]] = true
		}
	}
	for i := range names {
		if numbers[i] < 0 {
			numbers[i] = max(slices.Index(taken, false), 0)
			taken[numbers[i]] = true
		}
	}
	return numbers
}

func title(o *overview.Overview, l *overview.Timeline) string {
	text := fmt.Sprintf("device %d", l.Device)
	if o.Meta.Source != "" {
		text = o.Meta.Source + ", " + text
	}
	for _, d := range o.Devices {
		if d.Ordinal == l.Device {
			_, peak, _ := d.Peak()
			text += ": peak " + units.Bytes(peak).String()
		}
	}
	return text
}
