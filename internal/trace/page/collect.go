package page

import (
	"fmt"
	"slices"

	"gm/formats/trace"
	"gm/internal/trace/iterations"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// collector collects the parts of a trace.
type collector struct {
	o       *overview.Overview
	derived *tags.Tags
	text    func(code int32) string
	all     []*builder
	byKey   map[partKey]*builder
	noted   int   // tensors of all parts
	row     int64 // of now
	marks   int
}

type partKey struct {
	device int32
	level  trace.Level
}

// builder makes a part. Numbers of kinds, labels and others are looked up by what the trace calls them.
type builder struct {
	*part
	alive    map[int64]int32 // number of the tensor, by id
	kindOf   map[kind]int32
	labelOf  map[int64]int32 // by number of the tag, or by code of the text for the driver's level
	stackOf  map[int32]int32
	streamOf map[int64]int32
	poolOf   map[int32]int32
	open     openSegments
	pooled   []int32 // tensors that stand for the growth of the driver's memory pools
	spans    []overview.Span
}

// maxMarks is the most marks of a part that are shown.
const maxMarks = 2000

// collect reads a trace to its end.
func collect(r *trace.Reader, o *overview.Overview, derived *tags.Tags) ([]*part, error) {
	c := &collector{o: o, derived: derived, text: r.Strings().Text, byKey: map[partKey]*builder{}}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		c.row = row
		c.iterate(e.TimeNS)
		return c.add(e)
	})
	if err != nil {
		return nil, r.Wrap(err)
	}
	c.row = o.Rows
	c.iterate(o.EndNS)
	return c.finish(), nil
}

// finish returns the parts that have allocations, those of the framework first.
func (c *collector) finish() []*part {
	var parts []*part
	colors := c.derived.Colors()
	for _, level := range []trace.Level{trace.LevelFramework, trace.LevelDriver} {
		for _, b := range c.all {
			if b.level == level && len(b.tensors) > 0 {
				b.open.finish(b.part)
				if b.colors = colors; level == trace.LevelDriver {
					b.colors = b.kindColors()
				}
				b.sections = slices.DeleteFunc(b.sections, func(s section) bool { return s.To.At == never })
				parts = append(parts, b.part)
			}
		}
	}
	return parts
}

// builder returns the builder of the part that a row belongs to.
func (c *collector) builder(e *trace.Event) *builder {
	key := partKey{e.Device, e.Level}
	b := c.byKey[key]
	if b != nil {
		return b
	}
	b = &builder{
		part: &part{
			name: partName(e.Device, e.Level, &c.o.Meta), short: fmt.Sprintf("GPU %d", e.Device), device: e.Device, level: e.Level,
			startNS: c.o.StartNS, endNS: c.o.EndNS, rows: c.o.Rows, capacity: c.o.Meta.Capacity,
		},
		alive: map[int64]int32{}, kindOf: map[kind]int32{}, labelOf: map[int64]int32{}, stackOf: map[int32]int32{}, streamOf: map[int64]int32{},
		poolOf: map[int32]int32{},
	}
	for _, d := range c.o.Devices {
		if d.Ordinal == e.Device {
			b.spans = d.Iterations
		}
	}
	c.byKey[key] = b
	c.all = append(c.all, b)
	return b
}

// add processes a row.
func (c *collector) add(e *trace.Event) error {
	switch e.Op {
	case trace.OpMark:
		if c.marks++; c.marks <= maxMarks {
			c.mark(e)
		}
		return nil
	case trace.OpSample, trace.OpSnapshot:
		return nil
	case trace.OpAlloc:
		if kind, _ := trace.ParseDriverTag(c.text(e.Tag)); e.Level == trace.LevelDriver && !kind.Obtained() {
			return nil
		}
		if c.noted++; c.noted > iterations.MaxInAll {
			return fmt.Errorf("row %d: a page has at most %d allocations", c.row, iterations.MaxInAll)
		}
	}
	b := c.builder(e)
	switch e.Op {
	case trace.OpAlloc:
		b.alive[e.ID] = c.alloc(b, e, e.Size)
	case trace.OpFree, trace.OpFreeCompleted:
		if number, ok := b.alive[e.ID]; ok {
			delete(b.alive, e.ID)
			b.end(number, e.TimeNS, c.row)
		}
	case trace.OpSegmentAlloc, trace.OpSegmentMap, trace.OpSegmentFree, trace.OpSegmentUnmap:
		if e.Level == trace.LevelDriver {
			c.pool(b, e)
			return nil
		}
		b.open.add(b.part, e, numberOf(b.streamOf, e.Stream, &b.streams, e.Stream))
	case trace.OpOOM:
		b.ooms = append(b.ooms, oom{place: c.place(b, e.TimeNS), Size: e.Size, Free: int64(e.Addr), Stack: c.text(e.Stack)})
	}
	return nil
}

// alloc adds a tensor and returns its number.
func (c *collector) alloc(b *builder, e *trace.Event, size int64) int32 {
	k := kind{
		size: size, count: 1, label: c.label(b, e), stack: numberOf(b.stackOf, e.Stack, &b.stacks, c.text(e.Stack)),
		stream: numberOf(b.streamOf, e.Stream, &b.streams, e.Stream), pool: numberOf(b.poolOf, e.Pool, &b.pools, c.text(e.Pool)),
	}
	number := int32(len(b.tensors))
	b.tensors = append(b.tensors, tensor{born: int32(len(b.events)), died: never, kind: numberOf(b.kindOf, k, &b.kinds, k), addr: e.Addr})
	b.events = append(b.events, event{number, e.TimeNS, c.row})
	return number
}

func (b *builder) end(number int32, timeNS, row int64) {
	b.tensors[number].died = int32(len(b.events))
	b.events = append(b.events, event{number, timeNS, row})
}

// place returns where a part is now.
func (c *collector) place(b *builder, timeNS int64) place {
	return place{int32(len(b.events)), timeNS - b.startNS, c.row}
}

// label returns the number of the label of an allocation: its tag or, at the driver's level, the kind of memory and the library.
func (c *collector) label(b *builder, e *trace.Event) int32 {
	if e.Level == trace.LevelDriver {
		return numberOf(b.labelOf, int64(e.Tag), &b.labels, tags.Label{Tag: c.text(e.Tag), Certainty: tags.Recorded})
	}
	index := c.derived.Index(e.ID)
	return numberOf(b.labelOf, int64(index), &b.labels, c.derived.Label(index))
}

// pool follows the growth of the driver's memory pools: each growth is a tensor, and what a pool gives back is taken from the last.
func (c *collector) pool(b *builder, e *trace.Event) {
	if e.Op == trace.OpSegmentAlloc {
		b.pooled = append(b.pooled, c.alloc(b, e, e.Size))
		return
	}
	for left := e.Size; left > 0 && len(b.pooled) > 0; {
		number := b.pooled[len(b.pooled)-1]
		b.pooled = b.pooled[:len(b.pooled)-1]
		size := b.kinds[b.tensors[number].kind].size
		b.end(number, e.TimeNS, c.row)
		if size > left {
			b.pooled = append(b.pooled, c.alloc(b, e, size-left))
		}
		left -= size
	}
}

// mark notes a mark in all parts, those that have no row yet excepted.
func (c *collector) mark(e *trace.Event) {
	for _, b := range c.all {
		b.marks = append(b.marks, mark{c.place(b, e.TimeNS), c.text(e.Tag)})
	}
}

// iterate notes where iterations begin and end, before the row of now.
func (c *collector) iterate(timeNS int64) {
	for _, b := range c.all {
		now := c.place(b, timeNS)
		if n := len(b.sections); n > 0 && b.sections[n-1].To.At == never && c.row >= b.spans[n-1].End {
			b.sections[n-1].To = now
		}
		if n := len(b.sections); n < len(b.spans) && c.row >= b.spans[n].First {
			b.sections = append(b.sections, section{From: now, To: place{At: never}})
		}
	}
}

// numberOf returns the number of a thing in a list, to which it is added when its key is new.
func numberOf[K comparable, T any](numbers map[K]int32, key K, list *[]T, thing T) int32 {
	number, known := numbers[key]
	if !known {
		number = int32(len(*list))
		numbers[key] = number
		*list = append(*list, thing)
	}
	return number
}
