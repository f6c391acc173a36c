package live

import (
	"strconv"

	"gm/formats/column"
	"gm/formats/trace"
)

// batchPeriod is the longest delay until entries of a framework's history arrive, in nanoseconds.
const batchPeriod = 12 * second

// Framework is the account of a process's tensors. It is not safe for concurrent use.
type Framework struct {
	texts   *column.Strings // to which the codes of events refer
	devices map[int32]*frameworkDevice
}

type frameworkDevice struct {
	tensors  usage
	reserved usage
	blocks   map[uint64]block // by address
	streams  groups
	stacks   groups
	rate     rate
	refused  int64
	until    int64
}

// block is a live tensor.
type block struct {
	size          int64
	stream, stack int32 // groups
}

// NewFramework returns an empty account.
func NewFramework(texts *column.Strings) *Framework {
	return &Framework{texts: texts, devices: map[int32]*frameworkDevice{}}
}

// Add adds the next entry of the framework's history on its device. It ignores ids: a free is matched by its address, and one without a
// known allocation changes nothing.
func (f *Framework) Add(e trace.Event) {
	d := f.devices[e.Device]
	if d == nil {
		d = &frameworkDevice{blocks: map[uint64]block{}, streams: newGroups(), stacks: newGroups()}
		f.devices[e.Device] = d
	}
	d.until = max(d.until, e.TimeNS)
	switch e.Op {
	case trace.OpAlloc:
		d.free(e.Addr) // if its free was not seen
		d.alloc(&e)
	case trace.OpFree, trace.OpFreeCompleted:
		d.free(e.Addr)
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		d.reserved.change(e.Size)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		d.reserved.change(-e.Size)
	case trace.OpOOM:
		d.refused++
	}
}

func (d *frameworkDevice) alloc(e *trace.Event) {
	b := block{e.Size, d.streams.of(e.Stream), d.stacks.of(int64(e.Stack))}
	d.blocks[e.Addr] = b
	d.tensors.add(b.size)
	d.streams.list[b.stream].add(b.size)
	d.stacks.list[b.stack].add(b.size)
	d.rate.add(e.TimeNS)
}

func (d *frameworkDevice) free(addr uint64) {
	b, ok := d.blocks[addr]
	if !ok {
		return
	}
	delete(d.blocks, addr)
	d.tensors.remove(b.size)
	d.streams.list[b.stream].remove(b.size)
	d.stacks.list[b.stack].remove(b.size)
}

// Levels returns the state at a time, by device.
func (f *Framework) Levels(nowNS int64) map[int32]*Level {
	levels := map[int32]*Level{}
	for ordinal, d := range f.devices {
		known := d.until
		if nowNS-known > batchPeriod {
			known = nowNS
		}
		levels[ordinal] = &Level{
			Live: d.tensors.live, Peak: d.tensors.peak, Reserved: d.reserved.live, PeakReserved: d.reserved.peak,
			Allocs: d.tensors.allocs, Rate: d.rate.at(known), Refused: d.refused, UntilNS: d.until, Tags: []Group{},
			Streams: d.streams.largest(describeStream), Stacks: d.stacks.largest(describeStack(f.texts)),
		}
	}
	return levels
}

func describeStream(handle int64, to *Group) { to.Name = strconv.FormatInt(handle, 10) }

func describeStack(texts *column.Strings) func(code int64, to *Group) {
	return func(code int64, to *Group) { to.Name = texts.Text(int32(code)) }
}
