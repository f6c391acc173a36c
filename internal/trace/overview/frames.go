package overview

import (
	"slices"

	"gm/formats/trace"
)

// Frames are the moments at which a picture shows the memory of each GPU: the row with the most live bytes in each of a number of equal
// intervals of its view.
type Frames struct {
	devices []*frames
}

// frames are the moments of one GPU.
type frames struct {
	ordinal int32
	level   trace.Level
	view    View
	before  column // the last row before the view
	columns [Columns]column
	pages   map[uint64]struct{} // used pages of addresses; nil if there are too many
	live    map[int64]int64     // bytes by id
	bytes   int64
}

// column is an interval of a view.
type column struct {
	known bool
	row   int64 // at which most bytes are live
	bytes int64
}

// Columns is the number of intervals of a picture.
const Columns = 1000

const (
	pageSize = 2 << 20
	maxPages = 1 << 20 // of 2 TiB
)

// ReadFrames reads the trace whose overview is o a second time. GPUs without a view are left out.
func ReadFrames(r *trace.Reader, o *Overview, views map[int32]View) (*Frames, error) {
	f := &Frames{}
	byDevice := map[int32]*frames{}
	for _, d := range o.Devices {
		view, shown := views[d.Ordinal]
		if level, peak, _ := d.Peak(); peak > 0 && shown {
			of := &frames{ordinal: d.Ordinal, level: level, view: view, pages: map[uint64]struct{}{}, live: map[int64]int64{}}
			byDevice[d.Ordinal] = of
			f.devices = append(f.devices, of)
		}
	}
	text := r.Strings().Text
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if d := byDevice[e.Device]; d != nil && d.level == e.Level {
			d.add(e, row, text)
		}
		return nil
	})
	return f, err
}

// PeakRows returns the row of each GPU after which the most bytes live in its view.
func (f *Frames) PeakRows() map[int32]int64 {
	rows := map[int32]int64{}
	for _, d := range f.devices {
		peak := column{}
		if !d.columns[0].known {
			peak = d.before
		}
		for _, c := range d.columns {
			if c.known && (!peak.known || c.bytes > peak.bytes) {
				peak = c
			}
		}
		rows[d.ordinal] = peak.row
	}
	return rows
}

func (f *frames) add(e *trace.Event, row int64, text func(code int32) string) {
	switch e.Op {
	case trace.OpAlloc:
		if f.level == trace.LevelDriver && !obtainedBy(e, text) {
			return
		}
		f.live[e.ID] = e.Size
		f.bytes += e.Size
		f.touch(e.Addr, e.Size)
	case trace.OpFree, trace.OpFreeCompleted:
		f.bytes -= f.live[e.ID]
		delete(f.live, e.ID)
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		f.touch(e.Addr, e.Size)
		if f.level == trace.LevelDriver && e.Op == trace.OpSegmentAlloc {
			f.bytes += e.Size
		}
	case trace.OpSegmentFree:
		if f.level == trace.LevelDriver {
			f.bytes = max(f.bytes-e.Size, 0)
		}
	}
	switch n := f.view.column(row, e.TimeNS); {
	case n < 0:
		f.before = column{true, row, f.bytes}
	case n < Columns && (!f.columns[n].known || f.bytes > f.columns[n].bytes):
		f.columns[n] = column{true, row, f.bytes}
	}
}

// shows reports whether a row is the moment of a column. The column may lie outside of the view.
func (f *frames) shows(column int, row int64) bool {
	return column >= 0 && column < Columns && f.columns[column].row == row
}

// obtainedBy reports whether a row of the driver's level is about device memory of its own.
func obtainedBy(e *trace.Event, text func(code int32) string) bool {
	kind, _ := trace.ParseDriverTag(text(e.Tag))
	return kind.Obtained()
}

// touch records which pages are used. If the first and the last page of a block are recorded, it assumes that those between are, too.
func (f *frames) touch(addr uint64, size int64) {
	if addr == 0 || size <= 0 || f.pages == nil {
		return
	}
	first, last := addr/pageSize, (addr+uint64(size)-1)/pageSize
	_, low := f.pages[first]
	_, high := f.pages[last]
	if low && high {
		return
	}
	if last < first || last-first > maxPages-uint64(len(f.pages)) {
		f.pages = nil
		return
	}
	for page := first; page <= last; page++ {
		f.pages[page] = struct{}{}
	}
}

// places returns the index of each page on a map without gaps.
func (f *frames) places() map[uint64]int64 {
	pages := make([]uint64, 0, len(f.pages))
	for page := range f.pages {
		pages = append(pages, page)
	}
	slices.Sort(pages)
	places := make(map[uint64]int64, len(pages))
	for i, page := range pages {
		places[page] = int64(i) * pageSize
	}
	return places
}
