package link

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/host"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// sizes are those that copies are measured for, in bytes.
var sizes = [...]int64{64 * kib, mib, 16 * mib, 256 * mib, gib}

// Device is a GPU that is measured; *driver.Device is one. Its methods are those of the CUDA driver API and mean what they mean there.
type Device interface {
	// Name returns the product's name (cuDeviceGetName).
	Name() string
	// PCIBusID returns where the device is (cuDeviceGetPCIBusId).
	PCIBusID() (string, error)

	MemAlloc(size int64) (cuda.Ptr, error)
	MemFree(p cuda.Ptr) error
	MemInfo() (free, total int64, err error)
	HostRegister(memory []byte) error
	HostUnregister(memory []byte) error

	StreamCreate() (cuda.Stream, error)
	StreamDestroy(s cuda.Stream) error
	StreamSynchronize(s cuda.Stream) error
	StreamWaitEvent(s cuda.Stream, e cuda.Event) error
	EventRecord(s cuda.Stream) (cuda.Event, error)
	EventDestroy(e cuda.Event) error

	// MemcpyDtoHAsync copies device memory at src to dst, in stream s (cuMemcpyDtoHAsync).
	MemcpyDtoHAsync(dst []byte, src cuda.Ptr, s cuda.Stream) error
	// MemcpyHtoDAsync copies src to device memory at dst, in stream s (cuMemcpyHtoDAsync).
	MemcpyHtoDAsync(dst cuda.Ptr, src []byte, s cuda.Stream) error
	// MemcpyDtoDAsync copies size bytes of device memory, in stream s (cuMemcpyDtoDAsync).
	MemcpyDtoDAsync(dst, src cuda.Ptr, size int64, s cuda.Stream) error

	// IntervalBegin begins to time stream s behind the work that it holds now, IntervalEnd ends it (cuEventRecord).
	IntervalBegin(s cuda.Stream) (cuda.Interval, error)
	IntervalEnd(i cuda.Interval, s cuda.Stream) error
	// Elapsed returns the length of an interval, false while it has not passed (cuEventElapsedTime).
	Elapsed(i cuda.Interval) (time.Duration, bool, error)
	IntervalDestroy(i cuda.Interval)
}

// Options are how to measure.
type Options struct {
	Driver  string // its version, for the file
	Largest int64  // size of a copy in bytes; 0 is 1 GiB. Twice as much of the host and four times as much of each GPU are taken.
	Done    func() // is called after each of Steps
}

// Steps returns how often Measure calls Done.
func Steps(devices int) int {
	n := 3 * devices // pinned, copies, memory
	if devices > 1 {
		n++
	}
	return n
}

// Measure measures the link of each device, and of all of them at once. Ordinals are the order of devices. Sizes that do not
// fit into half of the memory that is free on a device are left out. The devices and the host should do nothing else meanwhile. After an
// error some events may be left.
func Measure(devices []Device, o Options) (_ *Link, err error) {
	if len(devices) == 0 {
		return nil, errors.New("no device to measure")
	}
	if o.Done == nil {
		o.Done = func() {}
	}
	largest, err := fitting(devices, o.Largest)
	if err != nil {
		return nil, err
	}
	m := measuring{largest: largest, done: o.Done}
	m.link = &Link{Schema: Schema, Device: devices[0].Name(), Driver: o.Driver, GPUs: make([]GPU, len(devices))}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.open(devices); err != nil {
		return nil, err
	}
	if err := m.alone(); err != nil {
		return nil, err
	}
	if err := m.together(); err != nil {
		return nil, err
	}
	return m.link, nil
}

// measuring is a link while it is measured.
type measuring struct {
	link    *Link
	all     []*bench
	largest int64
	done    func()
}

func (m *measuring) open(devices []Device) error {
	for i, d := range devices {
		m.link.GPUs[i].Ordinal = i
		b, err := newBench(d, m.largest, &m.link.GPUs[i])
		if err != nil {
			return fmt.Errorf("get ready on GPU %d: %w", i, err)
		}
		m.all = append(m.all, b)
		m.done()
	}
	return nil
}

func (m *measuring) close() (errs error) {
	for _, b := range m.all {
		errs = errors.Join(errs, b.close())
	}
	return errs
}

// alone measures one device after the other.
func (m *measuring) alone() error {
	for i, b := range m.all {
		g := &m.link.GPUs[i]
		rates, err := ratesOf([]*bench{b}, m.largest)
		if err != nil {
			return fmt.Errorf("measure copies of GPU %d: %w", i, err)
		}
		g.Alone = rates[0]
		m.done()
		if g.MemorySlowdown, err = b.memorySlowdown(g.Alone[len(g.Alone)-1]); err != nil {
			return fmt.Errorf("measure copies within GPU %d: %w", i, err)
		}
		m.done()
	}
	return nil
}

// together measures all devices at once, if there are several.
func (m *measuring) together() error {
	if len(m.all) == 1 {
		return nil
	}
	rates, err := ratesOf(m.all, m.largest)
	if err != nil {
		return fmt.Errorf("measure copies of %d GPUs at once: %w", len(m.all), err)
	}
	for i := range rates {
		m.link.GPUs[i].Together = rates[i]
	}
	m.done()
	return nil
}

// fitting returns the largest size that is measured.
func fitting(devices []Device, most int64) (int64, error) {
	if most == 0 {
		most = gib
	}
	for i, d := range devices {
		free, _, err := d.MemInfo()
		if err != nil {
			return 0, fmt.Errorf("read the free memory of GPU %d: %w", i, err)
		}
		most = min(most, free/8)
	}
	if most < sizes[0] {
		return 0, fmt.Errorf("there is room for copies of %d bytes, the smallest ones measured have %d", most, sizes[0])
	}
	return most, nil
}

// bench is a device with all that is needed to measure it.
type bench struct {
	Device
	memory *host.Memory
	pinned [2][]byte   // of memory: what is copied to, and from
	gpu    [4]cuda.Ptr // what is copied from, to, and within the GPU from and to; 0: not there
	lanes  [2]cuda.Stream
	work   cuda.Stream // in which memory of the GPU is copied
	size   int64       // of each of these
}

// newBench also measures what pinning costs.
func newBench(d Device, size int64, g *GPU) (*bench, error) {
	b := &bench{Device: d, size: size}
	err := b.pin(g)
	for i := range b.gpu {
		if err == nil {
			b.gpu[i], err = d.MemAlloc(size)
		}
	}
	for _, s := range [...]*cuda.Stream{&b.lanes[0], &b.lanes[1], &b.work} {
		if err == nil {
			*s, err = d.StreamCreate()
		}
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) pin(g *GPU) error {
	id, err := b.PCIBusID()
	if err != nil {
		return err
	}
	half := (b.size + host.Page() - 1) / host.Page() * host.Page()
	if b.memory, err = host.Map(2*half, host.Node(id)); err != nil {
		return err
	}
	g.NUMANode = b.memory.Node()
	began := time.Now()
	if err := host.Touch(b.memory.Bytes()); err != nil {
		return err
	}
	touched := time.Now()
	for i := range b.pinned {
		part := b.memory.Bytes()[int64(i)*half:][:half]
		if err := b.HostRegister(part); err != nil {
			return err
		}
		b.pinned[i] = part
	}
	perGiB := func(t time.Duration) int64 { return int64(float64(t) * gib / float64(2*half)) }
	g.TouchNS, g.RegisterNS = perGiB(touched.Sub(began)), perGiB(time.Since(touched))
	return nil
}

// close frees everything. Memory of the host that cannot be unpinned is kept.
func (b *bench) close() (errs error) {
	for _, s := range [...]cuda.Stream{b.lanes[0], b.lanes[1], b.work} {
		if s != 0 {
			errs = errors.Join(errs, b.StreamSynchronize(s), b.StreamDestroy(s))
		}
	}
	for _, p := range b.gpu {
		if p != 0 {
			errs = errors.Join(errs, b.MemFree(p))
		}
	}
	for _, part := range b.pinned {
		if part != nil {
			errs = errors.Join(errs, b.HostUnregister(part))
		}
	}
	if b.memory == nil || errs != nil {
		return errs
	}
	return b.memory.Unmap()
}
