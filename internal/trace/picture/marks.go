package picture

import (
	"strconv"
	"strings"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/iterations"
	"gm/internal/trace/overview"
)

// moments are rows of a trace and their times.
type moments struct {
	times map[int64]int64 // by row
	rows  map[int64]int64 // by time: the last row that is not later
	named []named
}

// named is a mark of the program.
type named struct {
	row, timeNS int64
	name        string
}

// rowsOfMarks returns the rows at which something is marked: failed requests, and the beginnings of iterations.
func rowsOfMarks(o *overview.Overview) map[int64]bool {
	rows := map[int64]bool{}
	for _, d := range o.Devices {
		for _, oom := range d.OOMs {
			rows[oom.Row] = true
		}
		for _, section := range d.Iterations {
			rows[section.First] = true
		}
	}
	return rows
}

// The most marks of the program that are kept, and the most of one kind that are drawn: more would hide what is drawn.
const (
	mostNamed = 1 << 16
	mostMarks = 60
)

// markWidth is the length of a mark's name in a picture, in characters.
const markWidth = 28

// readMoments returns the times of rows, the rows of times, and the marks of a trace that end no iteration.
func readMoments(r *trace.Reader, rows map[int64]bool, times []int64) (*moments, error) {
	m := &moments{times: map[int64]int64{}, rows: map[int64]int64{}}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if rows[row] {
			m.times[row] = e.TimeNS
		}
		for _, at := range times {
			if e.TimeNS <= at {
				m.rows[at] = row
			}
		}
		if e.Op == trace.OpMark && len(m.named) < mostNamed {
			if name := nameOf(r.Strings().Text(e.Tag)); name != "" {
				m.named = append(m.named, named{row, e.TimeNS, name})
			}
		}
		return nil
	})
	return m, err
}

// nameOf returns what to write at a mark, "" for one that is not drawn: the end of an iteration or of an annotation.
func nameOf(tag string) string {
	if tag == iterations.Step || strings.HasSuffix(tag, " END") {
		return ""
	}
	name := []rune(strings.TrimSuffix(tag, " START"))
	if len(name) > markWidth {
		return string(name[:markWidth-1]) + "…"
	}
	return string(name)
}

// marks returns the marks of a device that lie in its view.
func (m *moments) marks(o *overview.Overview, l *overview.Timeline) []report.Mark {
	var all []report.Mark
	add := func(row, timeNS int64, mark report.Mark) {
		if at := l.View.At(row, timeNS); at >= l.View.Start && at <= l.View.End {
			mark.At = onAxis(o, l.View, at)
			all = append(all, mark)
		}
	}
	for _, d := range o.Devices {
		if d.Ordinal != l.Device {
			continue
		}
		for _, oom := range d.OOMs {
			add(oom.Row, m.times[oom.Row], report.Mark{Name: "OOM", Alarm: true})
		}
		failures := len(all)
		for i, section := range d.Iterations {
			add(section.First, m.times[section.First], report.Mark{Name: strconv.Itoa(i)})
		}
		if len(all)-failures > mostMarks {
			all = all[:failures]
		}
	}
	others := len(all)
	for _, n := range m.named {
		add(n.row, n.timeNS, report.Mark{Name: n.name, Above: true})
	}
	if len(all)-others > mostMarks {
		all = all[:others]
	}
	return all
}
