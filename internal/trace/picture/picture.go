// Package picture draws traces: live bytes over time, and their addresses.
package picture

import (
	"fmt"

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

// Read returns the pictures of all devices of a trace that have something in the stretch.
func Read(source *column.Source, o *overview.Overview, labels *tags.Tags, look Look) ([]report.Timeline, error) {
	views, found, err := look.read(source, o)
	if err != nil {
		return nil, err
	}
	frames, err := trace.ReadSource(source, func(r *trace.Reader) (*overview.Frames, error) { return overview.ReadFrames(r, o, views) })
	if err != nil {
		return nil, err
	}
	tops, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Top, error) {
		return overview.ReadTop(r, o, overview.Look{Groups: drawnStacks, Tags: labels, Rows: frames.PeakRows()})
	})
	if err != nil {
		return nil, err
	}
	split, byTag := overview.ByTag(labels, tops), labels.Colors()
	if look.ByStack {
		byTag = nil
		split = overview.ByStack(tops, func(folded string) string { return report.Stack(folded, nameWidth) })
	}
	lines, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Timeline, error) { return frames.Read(r, split) })
	if err != nil {
		return nil, err
	}
	pictures := make([]report.Timeline, len(lines))
	for i, l := range lines {
		pictures[i] = picture(o, l, byTag)
		pictures[i].Marks = found.marks(o, l)
	}
	return pictures, nil
}

// picture returns the picture of a device, with the numbers of the colours of tags.
func picture(o *overview.Overview, l *overview.Timeline, byTag map[string]int) report.Timeline {
	t := report.Timeline{Title: title(o, l), Rows: l.View.Rows, Limit: o.Meta.Capacity, Start: onAxis(o, l.View, l.View.Start)}
	t.End = onAxis(o, l.View, l.View.End)
	if l.View.Rows {
		t.End++ // a row is as wide as the space to the next
	} else if t.End == t.Start {
		t.End++ // a moment is drawn as a second
	}
	t.End = max(t.End, t.Start*(1+leastPart))
	rest := len(l.Names) - 1
	for i, color := range colors(l.Names[:rest], byTag) {
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

// leastPart is the least length of a picture, as a part of what precedes it. Below, ticks could not be told apart as numbers.
const leastPart = 1e-9

// onAxis returns the place of a position on the axis of a view: the number of a row, or seconds from the first row.
func onAxis(o *overview.Overview, v overview.View, at int64) float64 {
	if v.Rows {
		return float64(at)
	}
	return float64(at-o.StartNS) / 1e9
}

// colors returns the numbers of the colours of names. Tags have those of [tags.Tags.Colors], also where they are guesses; others have numbers in
// their order.
func colors(names []string, byTag map[string]int) []int {
	numbers := make([]int, len(names))
	for i, name := range names {
		if of, known := byTag[tags.TagOf(name)]; known {
			numbers[i] = of
		} else {
			numbers[i] = i
		}
	}
	return numbers
}

func title(o *overview.Overview, l *overview.Timeline) string {
	text := fmt.Sprintf("device %d", l.Device)
	if o.Meta.Source != "" {
		text = o.Meta.Source + ", " + text
	}
	peak := int64(0)
	for column := range overview.Columns {
		live := int64(0)
		for _, bytes := range l.Bytes {
			live += bytes[column]
		}
		peak = max(peak, live)
	}
	text += ": peak " + units.Bytes(peak).String()
	if l.View != o.Whole(l.View.Rows) {
		text += " here"
	}
	return text
}
