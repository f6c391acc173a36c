package overview

import (
	"errors"

	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// Top is what is live on one GPU at the moments of most interest, the peak and the last failed request, or at a given row.
type Top struct {
	Device    int32     `json:"device"`
	Level     string    `json:"level"`      // whose allocations: the framework's or, if it has none, the driver's
	HasStacks bool      `json:"has_stacks"` // of any allocation, up to the last moment
	Moments   []*Moment `json:"moments"`
}

// Moment is what is live at a row. Only the groups with the most bytes are listed.
type Moment struct {
	What      string  `json:"what"` // "peak", "oom" or "at"
	Row       int64   `json:"row"`
	TimeNS    int64   `json:"time_ns"`
	Live      int64   `json:"live_bytes"`
	Blocks    int64   `json:"live_blocks"`
	Reserved  int64   `json:"reserved_bytes"` // in the framework's segments; 0 if unknown
	Failed    *Failed `json:"failed"`         // nil except for "oom"
	HasStacks bool    `json:"has_stacks"`
	Stacks    []Group `json:"stacks"`            // by folded stack
	Requests  []Group `json:"sizes_and_streams"` // by requested bytes and stream
	Tags      []Group `json:"tags"`              // of the framework's level, by name
	Rules     []Group `json:"rules"`             // as "name: the rule that assigned the tag"
	Streams   []Group `json:"streams"`
	Kinds     []Group `json:"kinds"` // of the driver's level, by kind and library
	Classes   []Group `json:"size_classes"`
}

// Look selects moments and groups.
type Look struct {
	Groups int             // the most groups of each kind that are listed; of tags at least 24
	Tags   *tags.Tags      // of the trace
	At     *int64          // row to look at; nil for the peak and the last failed request
	Rows   map[int32]int64 // instead of At, the row to look at on each device; others are left out
}

// Failed is a request that failed.
type Failed struct {
	Size  int64  `json:"requested_bytes"`
	Free  int64  `json:"device_free_bytes"`
	By    string `json:"by"` // the tag of the row if the driver refused the request, else ""
	Stack string `json:"stack"`
}

var errDone = errors.New("no moment is left")

// ReadTop reads the trace whose overview is o a second time, up to the last moment. Its memory grows with the live blocks.
func ReadTop(r *trace.Reader, o *Overview, look Look) ([]*Top, error) {
	var all []*Top
	holders, due, left := map[int32]*holder{}, map[int64][]*Moment{}, 0
	of := map[*Moment]*holder{}
	for _, d := range o.Devices {
		h := newHolder(d, look)
		if len(h.top.Moments) == 0 {
			continue
		}
		for _, m := range h.top.Moments {
			due[m.Row] = append(due[m.Row], m)
			of[m] = h
			left++
		}
		holders[d.Ordinal] = h
		all = append(all, h.top)
	}
	text := r.Strings().Text
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if left == 0 {
			return errDone
		}
		if h := holders[e.Device]; h != nil && e.Level == h.level {
			h.add(e, text(e.Tag))
		}
		for _, m := range due[row] {
			of[m].describe(m, e, text)
			left--
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return all, nil
}

// RowAt returns the last row of a trace that is not later than a time; 0 if all rows are.
func RowAt(r *trace.Reader, timeNS int64) (row int64, err error) {
	err = trace.Each(r, func(n int64, e *trace.Event) error {
		if e.TimeNS > timeNS {
			return errDone
		}
		row = n
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return 0, err
	}
	return row, nil
}

// Peak returns the level of the allocations to examine on a device, the framework's or, if it has none, the driver's, their peak in
// bytes, and its row.
func (d *Device) Peak() (level trace.Level, bytes, row int64) {
	if d.Allocs == 0 && d.Driver != nil {
		return trace.LevelDriver, d.Driver.Peak, d.Driver.PeakRow
	}
	return trace.LevelFramework, d.PeakLive, d.PeakRow
}

// moments returns the moments of a device to examine.
func (d *Device) moments(look Look) []*Moment {
	_, peak, row := d.Peak()
	if row, ok := look.Rows[d.Ordinal]; look.Rows != nil {
		if !ok {
			return nil
		}
		return []*Moment{{What: "at", Row: row}}
	}
	if look.At != nil {
		if peak == 0 {
			return nil
		}
		return []*Moment{{What: "at", Row: *look.At}}
	}
	var all []*Moment
	if peak > 0 {
		all = append(all, &Moment{What: "peak", Row: row})
	}
	if n := len(d.OOMs); n > 0 {
		all = append(all, &Moment{What: "oom", Row: d.OOMs[n-1].Row})
	} else if d.Driver != nil && len(d.Driver.Refusals) > 0 {
		all = append(all, &Moment{What: "oom", Row: d.Driver.Refusals[len(d.Driver.Refusals)-1].Row})
	}
	return all
}
