// Package failuretest makes traces of programs that run out of memory on a simulated GPU, for tests that know why they do.
package failuretest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// Machine runs PyTorch's allocator on a simulated GPU, and records what a snapshot of it would have.
type Machine struct {
	Conf  allocconf.Conf
	Torch *blocks.Torch
	Rows  []trace.Event
	Meta  trace.Meta

	t    testing.TB
	dev  *recorder
	now  int64
	live []Tensor
	ids  int64
}

// Tensor is a live tensor.
type Tensor struct {
	ID     int64
	Addr   cuda.Ptr
	Size   int64 // bytes
	Stream cuda.Stream
}

// New returns a machine with a GPU of capacity bytes.
func New(t testing.TB, capacity int64, conf allocconf.Conf) *Machine {
	t.Helper()
	m := &Machine{Conf: conf, t: t, Meta: trace.Meta{Source: "simulated", Alignment: 512, AllocConf: conf.String()}}
	m.dev = &recorder{Device: sim.New(capacity, sim.CostTable{}), machine: m, sizes: map[cuda.Ptr]int64{}}
	var err error
	if m.Torch, err = blocks.NewTorch(m.dev, conf); err != nil {
		t.Fatal(err)
	}
	return m
}

// Alloc requests a tensor and reports whether the request was met.
func (m *Machine) Alloc(size int64, stream cuda.Stream) bool {
	m.t.Helper()
	m.dev.stream = int64(stream)
	m.now++
	p, err := m.Torch.Malloc(size, stream, 0)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		free, _, err := m.dev.MemInfo()
		if err != nil {
			m.t.Fatal(err)
		}
		m.add(trace.Event{Op: trace.OpOOM, Size: size, Addr: uint64(free), Stream: int64(stream)})
		return false
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.ids++
	m.live = append(m.live, Tensor{m.ids, p, size, stream})
	m.add(trace.Event{Op: trace.OpAlloc, ID: m.ids, Size: size, Addr: uint64(p), Stream: int64(stream)})
	return true
}

// Free frees the i-th of the live tensors.
func (m *Machine) Free(i int) {
	m.t.Helper()
	f := m.live[i]
	m.live = slices.Delete(m.live, i, i+1)
	m.now++
	if err := m.Torch.Free(f.Addr); err != nil {
		m.t.Fatal(err)
	}
	m.add(trace.Event{Op: trace.OpFree, ID: f.ID, Size: f.Size, Addr: uint64(f.Addr), Stream: int64(f.Stream)})
}

// Live returns the live tensors, in the order of their requests.
func (m *Machine) Live() []Tensor { return m.live }

func (m *Machine) add(e trace.Event) {
	e.TimeNS = m.now
	m.Rows = append(m.Rows, e)
}

// Trace returns the rows as a file. Rows before the first are left out, as if they had left the ring of the history: what was there then
// stands at the beginning, tagged as older.
func (m *Machine) Trace(first int) []byte {
	m.t.Helper()
	var file bytes.Buffer
	w := trace.NewWriter(&file, m.Meta)
	var b trace.Batch
	renamed := map[int64]int64{}
	for _, e := range append(older(m.Rows[:first], w.Strings().Code(trace.PreexistingTag(0))), m.Rows[first:]...) {
		if e.Op == trace.OpAlloc && e.Level == trace.LevelFramework {
			renamed[e.ID] = int64(len(renamed) + 1)
		}
		if e.Level == trace.LevelFramework {
			e.ID = renamed[e.ID]
		}
		b.Append(e)
	}
	if err := errors.Join(w.Write(&b), w.Close()); err != nil {
		m.t.Fatal(err)
	}
	return file.Bytes()
}

// older returns rows for what is there after some rows.
func older(rows []trace.Event, tag int32) []trace.Event {
	segments, tensors := map[uint64]trace.Event{}, map[int64]trace.Event{}
	for _, e := range rows {
		switch e.Op {
		case trace.OpSegmentAlloc, trace.OpSegmentMap:
			segments[e.Addr] = e
		case trace.OpSegmentFree, trace.OpSegmentUnmap:
			maps.DeleteFunc(segments, func(at uint64, _ trace.Event) bool { return at >= e.Addr && at < e.Addr+uint64(e.Size) })
		case trace.OpAlloc:
			tensors[e.ID] = e
		case trace.OpFree:
			delete(tensors, e.ID)
		}
	}
	var all []trace.Event
	sorted := func(add func(yield func(trace.Event))) {
		var some []trace.Event
		add(func(e trace.Event) {
			e.Tag, e.TimeNS = tag, 0
			some = append(some, e)
		})
		slices.SortFunc(some, func(a, b trace.Event) int { return int(int64(a.Addr) - int64(b.Addr)) })
		all = append(all, some...)
	}
	sorted(func(yield func(trace.Event)) {
		for _, e := range segments {
			yield(e)
		}
	})
	sorted(func(yield func(trace.Event)) {
		for _, e := range tensors {
			yield(e)
		}
	})
	return all
}

// recorder is a device that records segments.
type recorder struct {
	*sim.Device
	machine *Machine
	stream  int64 // of the request
	sizes   map[cuda.Ptr]int64
	mapped  map[cuda.Handle]int64
}

// MemAlloc implements cuda.Device.
func (d *recorder) MemAlloc(size int64) (cuda.Ptr, error) {
	p, err := d.Device.MemAlloc(size)
	if err == nil {
		d.sizes[p] = size
		d.machine.add(trace.Event{Op: trace.OpSegmentAlloc, Size: size, Addr: uint64(p), Stream: d.stream})
	}
	return p, err
}

// MemFree implements cuda.Device.
func (d *recorder) MemFree(p cuda.Ptr) error {
	d.machine.add(trace.Event{Op: trace.OpSegmentFree, Size: d.sizes[p], Addr: uint64(p), Stream: d.stream})
	return d.Device.MemFree(p)
}

// Create implements cuda.Device.
func (d *recorder) Create(size int64) (cuda.Handle, error) {
	h, err := d.Device.Create(size)
	if err == nil {
		if d.mapped == nil {
			d.mapped = map[cuda.Handle]int64{}
		}
		d.mapped[h] = size
	}
	return h, err
}

// Map implements cuda.Device.
func (d *recorder) Map(p cuda.Ptr, h cuda.Handle) error {
	err := d.Device.Map(p, h)
	if err == nil {
		d.machine.add(trace.Event{Op: trace.OpSegmentMap, Size: d.mapped[h], Addr: uint64(p), Stream: d.stream})
	}
	return err
}

// Unmap implements cuda.Device.
func (d *recorder) Unmap(p cuda.Ptr, size int64) error {
	d.machine.add(trace.Event{Op: trace.OpSegmentUnmap, Size: size, Addr: uint64(p), Stream: d.stream})
	return d.Device.Unmap(p, size)
}
