package tags

import (
	"math"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/iterations"
)

// block is an allocation.
type block struct {
	id, size, stream  int64
	born, died        int64  // rows; died is when its owner freed it, or never
	live              int64  // live bytes on the device just before it
	recorded          uint16 // number of the label that the trace has for it, from 1; 0 for none
	origin            origin
	preexisting, bare bool // bare: without a stack
}

// never is the row of an event that does not happen.
const never = math.MaxInt64

// device holds the allocations of a GPU in order.
type device struct {
	blocks  []block
	stacked int // how many have a stack

	live  int64
	alive map[int64]int // index by id
}

// collector collects the allocations of a trace.
type collector struct {
	texts    *column.Strings
	order    []int32 // devices
	devices  map[int32]*device
	marks    []mark
	lastID   int64
	noted    int // blocks of all devices
	recorded []Label
	byLabel  map[Label]uint16
	origins  map[int32]origin // by code of the stack
}

// mark is the beginning or the end of an optimizer's step.
type mark struct {
	row   int64
	begin bool
}

func newCollector(texts *column.Strings) *collector {
	return &collector{
		texts: texts, devices: map[int32]*device{}, byLabel: map[Label]uint16{}, origins: map[int32]origin{},
	}
}

// add processes a row.
func (c *collector) add(e *trace.Event, row int64) {
	c.lastID = max(c.lastID, e.ID)
	switch {
	case e.Op == trace.OpMark:
		c.mark(c.texts.Text(e.Tag), row)
	case e.Level != trace.LevelFramework:
	case e.Op == trace.OpAlloc:
		c.alloc(e, row)
	case e.Op == trace.OpFree, e.Op == trace.OpFreeRequested, e.Op == trace.OpFreeCompleted:
		c.device(e.Device).free(e, row)
	}
}

// optimizerMark is the prefix of the marks of PyTorch's profiler at an optimizer's step, which end with START or END.
const optimizerMark = "Optimizer.step#"

func (c *collector) mark(text string, row int64) {
	if strings.HasPrefix(text, optimizerMark) {
		c.marks = append(c.marks, mark{row, strings.HasSuffix(text, " START")})
	}
}

func (c *collector) device(ordinal int32) *device {
	d := c.devices[ordinal]
	if d == nil {
		d = &device{alive: map[int64]int{}}
		c.devices[ordinal] = d
		c.order = append(c.order, ordinal)
	}
	return d
}

func (c *collector) alloc(e *trace.Event, row int64) {
	d := c.device(e.Device)
	if len(d.blocks) == iterations.MaxRequests || c.noted == iterations.MaxInAll {
		return
	}
	c.noted++
	b := block{id: e.ID, size: e.Size, stream: e.Stream, born: row, died: never, live: d.live, bare: e.Stack == 0}
	tag := c.texts.Text(e.Tag)
	_, b.preexisting = trace.ParsePreexisting(tag)
	if l, ok := labelOf(tag, c.texts.Text(e.Derived)); ok {
		b.recorded = c.label(l)
	}
	if !b.bare {
		b.origin = c.origin(e.Stack)
		d.stacked++
	}
	d.alive[e.ID] = len(d.blocks)
	d.blocks = append(d.blocks, b)
	d.live += e.Size
}

// label returns the number of a label that the trace has, from 1; 0 if there are too many.
func (c *collector) label(l Label) uint16 {
	n, ok := c.byLabel[l]
	if !ok && len(c.recorded) < maxRecorded {
		c.recorded = append(c.recorded, l)
		n = uint16(len(c.recorded))
		c.byLabel[l] = n
	}
	return n
}

func (c *collector) origin(stack int32) origin {
	o, ok := c.origins[stack]
	if !ok {
		o = originOf(c.texts.Text(stack))
		c.origins[stack] = o
	}
	return o
}

// free records that a block was freed, and when its memory is reusable.
func (d *device) free(e *trace.Event, row int64) {
	i, ok := d.alive[e.ID]
	if !ok {
		return
	}
	b := &d.blocks[i]
	b.died = min(b.died, row)
	if e.Op != trace.OpFreeRequested {
		delete(d.alive, e.ID)
		d.live -= b.size
	}
}
