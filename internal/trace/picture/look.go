package picture

import (
	"errors"
	"fmt"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// Look selects what is drawn, and how.
type Look struct {
	ByStack   bool    // colours stand for stacks rather than tags
	Rows      bool    // the axis counts rows rather than time
	From, To  *Moment // both are shown; nil for the beginning and the end of the trace
	Iteration *int    // instead of From and To, by its number from 0 on each device
}

// Moment is a time or a row.
type Moment struct {
	Timed bool
	After time.Duration // since the first row, if it is timed
	Row   int64         // otherwise
}

// ErrEmpty says that From is after To.
var ErrEmpty = errors.New("the picture ends before it begins")

// read reads the trace, and returns what is shown of each device and the moments of the trace that are drawn or bound it.
func (l *Look) read(source *column.Source, o *overview.Overview) (map[int32]overview.View, *moments, error) {
	spans := map[int32]overview.Span{}
	if l.Iteration != nil {
		var err error
		if spans, err = o.Iteration(*l.Iteration); err != nil {
			return nil, nil, fmt.Errorf("trace %s: %w", source.Name(), err)
		}
	}
	rows := rowsOfMarks(o)
	for _, span := range spans {
		rows[last(o, span)] = true
	}
	for _, m := range []*Moment{l.From, l.To} {
		if m != nil && !m.Timed {
			rows[m.Row] = true
		}
	}
	found, err := trace.ReadSource(source, func(r *trace.Reader) (*moments, error) { return readMoments(r, rows, l.edges(o)) })
	if err != nil {
		return nil, nil, err
	}
	views := map[int32]overview.View{}
	for _, d := range o.Devices {
		view := o.Whole(l.Rows)
		if span, ok := spans[d.Ordinal]; ok {
			view.Start, view.End = view.At(span.First, found.times[span.First]), view.At(last(o, span), found.times[last(o, span)])
		} else if l.Iteration != nil {
			continue
		}
		if l.From != nil {
			view.Start = l.position(l.From, o, found)
		}
		if l.To != nil {
			view.End = l.position(l.To, o, found)
		}
		if view.Start > view.End {
			return nil, nil, ErrEmpty
		}
		views[d.Ordinal] = view
	}
	return views, found, nil
}

// last returns the last row of an iteration.
func last(o *overview.Overview, span overview.Span) int64 { return min(span.End, o.Rows) - 1 }

// edges returns the times whose rows are wanted.
func (l *Look) edges(o *overview.Overview) []int64 {
	var times []int64
	for _, m := range []*Moment{l.From, l.To} {
		if m != nil && m.Timed {
			times = append(times, o.StartNS+int64(m.After))
		}
	}
	return times
}

// position returns the position of a moment on the axis: for a time the last row that is not later, or the time of a row.
func (l *Look) position(m *Moment, o *overview.Overview, found *moments) int64 {
	timeNS := o.StartNS + int64(m.After)
	switch {
	case m.Timed && l.Rows:
		return found.rows[timeNS]
	case m.Timed:
		return timeNS
	case l.Rows:
		return m.Row
	}
	return found.times[m.Row]
}
