package overview

import (
	"math"

	"gm/formats/trace"
)

// Timeline is the live memory of one GPU over a view, in [Columns] equal intervals, each at the moment with the most live bytes.
type Timeline struct {
	Device int32
	Level  trace.Level
	View   View
	Names  []string
	Bytes  [][]int64 // by name and column
	Held   []int64   // bytes of the framework's segments, by column; all 0 if unknown
	Map    *AddressMap
}

// AddressMap shows who holds which addresses over time. Addresses that were never used are omitted.
type AddressMap struct {
	Bytes int64   // height of the map
	Held  []uint8 // part of a cell that is in segments, in 255ths, by [Timeline] column and then by row from the lowest
	Parts []uint8 // part of a cell that is in blocks of each name, in 255ths, by column, row and name
}

// MapRows is the height of an address map in cells.
const MapRows = 400

// Split divides blocks by name.
type Split struct {
	Names func(device int32) []string
	Of    func(e *trace.Event, text func(code int32) string) int // number of the name of an alloc row
}

// Read reads the trace of the frames again.
func (f *Frames) Read(r *trace.Reader, split Split) ([]*Timeline, error) {
	var all []*Timeline
	tracers := map[int32]*tracer{}
	for _, d := range f.devices {
		t := newTracer(d, split)
		tracers[d.ordinal] = t
		all = append(all, t.out)
	}
	text := r.Strings().Text
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if t := tracers[e.Device]; t != nil && t.out.Level == e.Level {
			column := t.out.View.column(row, e.TimeNS)
			t.idle(column)
			t.add(e, text)
			if t.frames.shows(column, row) {
				t.look(column)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range tracers {
		t.idle(Columns)
	}
	return all, nil
}

// tracer tracks the live memory of a device.
type tracer struct {
	out    *Timeline
	frames *frames
	split  Split
	live   map[int64]area // by id
	bytes  []int64        // that are live, by name
	held   int64
	next   int     // the first column that is not filled yet
	canvas *canvas // nil if there are no addresses
}

// area is a block on a map, at a place that is negative if the block has no address.
type area struct {
	place, size int64
	name        int
}

func newTracer(d *frames, split Split) *tracer {
	t := &tracer{
		out:    &Timeline{Device: d.ordinal, Level: d.level, View: d.view, Names: split.Names(d.ordinal), Held: make([]int64, Columns)},
		frames: d, split: split, live: map[int64]area{},
	}
	t.bytes = make([]int64, len(t.out.Names))
	t.out.Bytes = make([][]int64, len(t.out.Names))
	for i := range t.out.Bytes {
		t.out.Bytes[i] = make([]int64, Columns)
	}
	if len(d.pages) > 0 {
		t.canvas = newCanvas(d.places(), len(t.out.Names))
		t.out.Map = t.canvas.out
	}
	return t
}

// add processes a row of the device.
func (t *tracer) add(e *trace.Event, text func(code int32) string) {
	driver := t.out.Level == trace.LevelDriver
	switch e.Op {
	case trace.OpAlloc:
		if driver && !obtainedBy(e, text) {
			return
		}
		a := area{t.canvas.place(e.Addr), e.Size, t.split.Of(e, text)}
		t.live[e.ID] = a
		t.bytes[a.name] += a.size
		t.canvas.paint(a.place, a.size, a.name, 1)
	case trace.OpFree, trace.OpFreeCompleted:
		if a, ok := t.live[e.ID]; ok {
			delete(t.live, e.ID)
			t.bytes[a.name] -= a.size
			t.canvas.paint(a.place, a.size, a.name, -1)
		}
	case trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap:
		sign := int64(1)
		if e.Op == trace.OpSegmentFree || e.Op == trace.OpSegmentUnmap {
			sign = -1
		}
		if driver {
			if e.Op == trace.OpSegmentAlloc || e.Op == trace.OpSegmentFree {
				name := t.split.Of(e, text)
				t.bytes[name] = max(t.bytes[name]+sign*e.Size, 0)
			}
			return
		}
		t.held = max(t.held+sign*e.Size, 0)
		t.canvas.paint(t.canvas.place(e.Addr), e.Size, len(t.bytes), sign)
	}
}

// idle fills the columns before the next one with a row with the current state.
func (t *tracer) idle(column int) {
	for ; t.next < column; t.next++ {
		t.look(t.next)
	}
	t.next = max(t.next, column+1)
}

// look records the current state in a column.
func (t *tracer) look(column int) {
	for i, bytes := range t.bytes {
		t.out.Bytes[i][column] = bytes
	}
	t.out.Held[column] = t.held
	t.canvas.copy(column)
}

// canvas is an address map of the current state.
type canvas struct {
	out    *AddressMap
	places map[uint64]int64
	height float64   // bytes of a row
	cover  []float64 // bytes by row and name; those of segments are under the last name
	names  int
}

func newCanvas(places map[uint64]int64, names int) *canvas {
	bytes := int64(len(places)) * pageSize
	return &canvas{
		out:    &AddressMap{Bytes: bytes, Held: make([]uint8, Columns*MapRows), Parts: make([]uint8, Columns*MapRows*names)},
		places: places, height: float64(bytes) / MapRows, cover: make([]float64, MapRows*(names+1)), names: names,
	}
}

// place returns the place of an address on the map; negative if it has none.
func (c *canvas) place(addr uint64) int64 {
	if c == nil || addr == 0 {
		return -1
	}
	place, ok := c.places[addr/pageSize]
	if !ok {
		return -1
	}
	return place + int64(addr%pageSize)
}

// paint adds an area, or removes it for a negative sign.
func (c *canvas) paint(place, size int64, name int, sign int64) {
	if c == nil || place < 0 {
		return
	}
	low, high := float64(place), float64(min(place+size, c.out.Bytes))
	for row := int(low / c.height); row < MapRows; row++ {
		bottom, top := float64(row)*c.height, float64(row+1)*c.height
		if bottom >= high {
			break
		}
		c.cover[row*(c.names+1)+name] += float64(sign) * (min(high, top) - max(low, bottom))
	}
}

// copy copies the map to a column of the picture.
func (c *canvas) copy(column int) {
	if c == nil {
		return
	}
	part := func(bytes float64) uint8 { return uint8(math.Round(255 * min(max(bytes/c.height, 0), 1))) }
	for row := range MapRows {
		cell, of := column*MapRows+row, c.cover[row*(c.names+1):]
		for name := range c.names {
			c.out.Parts[cell*c.names+name] = part(of[name])
		}
		c.out.Held[cell] = part(of[c.names])
	}
}
