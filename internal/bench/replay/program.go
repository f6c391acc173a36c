// Package replay runs the requests of a trace or a plan through an allocator on a simulated device.
package replay

import (
	"fmt"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/recording"
)

// Kind is what a step makes the allocator do.
type Kind uint8

// The kinds of steps.
const (
	Alloc    Kind = iota
	Free          // the owner frees the memory, and no other stream uses it
	Request       // the owner frees it while other streams use it
	Complete      // those streams are done
	Empty         // the allocator releases what it caches
)

// Program is the requests of one device in their order, with a slice for each column, as a replay reads them once from end to end.
type Program struct {
	Name      string
	Device    int32
	Align     int64  // bytes that sizes are rounded up to
	AllocConf string // settings of the traced allocator, as in PYTORCH_CUDA_ALLOC_CONF
	Capacity  int64  // bytes of the traced GPU; 0 if unknown
	Outside   int64  // bytes of it that others than PyTorch had from the driver at most: the context, libraries, NCCL; 0 if that was not recorded

	Kinds   []Kind
	Tensors []int32 // which tensor a step is about, from 0
	Rows    []int32 // the row of the trace that the step was made from
	TimesNS []int64

	Sizes   []int64 // of tensors, bytes as requested
	Streams []cuda.Stream
	Pools   []blocks.Pool

	Placements []blocks.Placement // of tensors, if the program was read from a plan
	Arenas     []int64            // sizes of the plan's arenas, in bytes

	// Partial programs begin or end midway, with memory in use. The plan that they were read from does not contain its layout, so that
	// PyTorch's allocator may reach another peak on them.
	Partial bool

	Refusals []Refusal // the requests that failed while the trace was recorded; none for a plan

	Jump string // in words, where the clock of the trace jumps forward, which makes times unreliable; "" if it does not

	Segments []sim.Range // the segments that the traced allocator took from the device, in order

	Initial        []blocks.Segment // what the traced allocator held before the recording, by address
	InitialTensors []int32          // the tensors that live in it, by address; they have Alloc steps, too

	origin *origin // nil if it was not opened as a file
}

// Steps returns the number of steps.
func (p *Program) Steps() int { return len(p.Kinds) }

// DurationNS returns the time from the first step to the last.
func (p *Program) DurationNS() int64 {
	if len(p.TimesNS) == 0 {
		return 0
	}
	return p.TimesNS[len(p.TimesNS)-1] - p.TimesNS[0]
}

func (p *Program) step(kind Kind, tensor int32, row, timeNS int64) {
	p.Kinds = append(p.Kinds, kind)
	p.Tensors = append(p.Tensors, tensor)
	p.Rows = append(p.Rows, int32(row))
	p.TimesNS = append(p.TimesNS, timeNS)
}

func (p *Program) tensor(size int64, stream int64, pool int32) int32 {
	p.Sizes = append(p.Sizes, size)
	p.Streams = append(p.Streams, cuda.Stream(stream))
	p.Pools = append(p.Pools, blocks.Pool(pool))
	return int32(len(p.Sizes) - 1)
}

// complete adds the end of a requested free; one that follows its request at once becomes a plain free.
func (p *Program) complete(tensor int32, row, timeNS int64) {
	if last := len(p.Kinds) - 1; last >= 0 && p.Kinds[last] == Request && p.Tensors[last] == tensor {
		p.Kinds[last] = Free
		return
	}
	p.step(Complete, tensor, row, timeNS)
}

// maxRows is the most rows of a framework's allocator that a trace may have, some 80 to 160 bytes each in a replay.
const maxRows = 1 << 25

// loader sorts the rows of a trace into one program a device.
type loader struct {
	name      string
	align     int64
	allocConf string
	conf      allocconf.Conf
	programs  []*Program
	byDevice  map[int32]*loading
	rows      int // of a framework's allocator
}

// loading is a program in the making.
type loading struct {
	*Program
	tensors map[int64]int32 // by id, of the live ones
	initial initial
	arenas  map[int32]int32 // by the plan's code
	emptied *recording.Emptied
}

// defaultAlign is what PyTorch rounds sizes up to, in bytes.
const defaultAlign = 512

// newLoader returns a loader; align is 0 if the alignment is not known.
func newLoader(name, allocConf string, align int64) *loader {
	if align <= 0 {
		align = defaultAlign
	}
	conf, _ := allocconf.Recorded(allocConf)
	return &loader{name: name, align: align, allocConf: allocConf, conf: conf, byDevice: map[int32]*loading{}}
}

func (l *loader) program(device int32) *loading {
	p := l.byDevice[device]
	if p == nil {
		p = &loading{
			Program: &Program{Name: l.name, Device: device, Align: l.align, AllocConf: l.allocConf},
			tensors: map[int64]int32{}, arenas: map[int32]int32{}, emptied: recording.NewEmptied(l.conf),
		}
		l.byDevice[device] = p
		l.programs = append(l.programs, p.Program)
	}
	return p
}

// add adds one row of a framework's allocator. It skips a free of a tensor that this device's framework does not have.
func (l *loader) add(e *trace.Event, row int64, tag string) {
	l.rows++
	p := l.program(e.Device)
	if at := p.emptied.Add(e, row); at >= 0 {
		p.step(Empty, 0, at, e.TimeNS)
	}
	block, older := trace.ParsePreexisting(tag)
	t, known := p.tensors[e.ID]
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		p.segment(e, older)
	case trace.OpOOM:
		p.Refusals = append(p.Refusals, Refusal{p.Steps(), row, e.TimeNS, e.Size, cuda.Stream(e.Stream), blocks.Pool(e.Pool)})
	case trace.OpAlloc:
		t = p.tensor(e.Size, e.Stream, e.Pool)
		p.tensors[e.ID] = t
		p.step(Alloc, t, row, e.TimeNS)
		if older {
			p.initial.add(e, block, int64(t))
		}
	case trace.OpFree:
		if known {
			p.step(Free, t, row, e.TimeNS)
			delete(p.tensors, e.ID)
		}
	case trace.OpFreeRequested:
		if known {
			p.step(Request, t, row, e.TimeNS)
		}
	case trace.OpFreeCompleted:
		if known {
			p.complete(t, row, e.TimeNS)
			delete(p.tensors, e.ID)
		}
	}
}

// segment adds a segment or a mapped range. An address of 0 is not known.
func (p *loading) segment(e *trace.Event, older bool) {
	switch {
	case e.Addr == 0 || e.Size == 0:
	case older:
		p.initial.add(e, 0, 0)
	case e.Op == trace.OpSegmentAlloc:
		p.Segments = append(p.Segments, sim.Range{Addr: cuda.Ptr(e.Addr), Size: e.Size})
	}
}

// finish settles the memory before the recording, names the programs and returns them.
func (l *loader) finish() []*Program {
	for _, p := range l.byDevice {
		segments, tensors := p.initial.settle()
		p.Initial = segments
		for _, t := range tensors {
			p.InitialTensors = append(p.InitialTensors, int32(t))
		}
		if len(l.programs) > 1 {
			p.Name = fmt.Sprintf("%s[%d]", l.name, p.Device)
		}
	}
	return l.programs
}

// PeakLive returns the most bytes that are live at the same time, each request rounded up to Align.
func (p *Program) PeakLive() int64 {
	var live, peak int64
	rounded := func(t int32) int64 { return (p.Sizes[t] + p.Align - 1) / p.Align * p.Align }
	for i, kind := range p.Kinds {
		switch kind {
		case Alloc:
			live += rounded(p.Tensors[i])
			peak = max(peak, live)
		case Free, Complete:
			live -= rounded(p.Tensors[i])
		}
	}
	return peak
}
