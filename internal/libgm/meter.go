package main

import (
	"fmt"
	"time"

	"gm/internal/cuda"
	"gm/internal/libgm/page"
)

// smallPiece is the size up to which physical memory counts as that of small requests, in bytes: PyTorch's segments for them.
const smallPiece = 2 << 20

// errCapturing means that a call is not possible while work is captured into a graph.
var errCapturing = fmt.Errorf("not possible now: %w", cuda.ErrCapturing)

// meter is a device as the allocator sees it: it counts what is taken, enforces the limit (limit.go), and refuses to wait during a capture. Calls on
// events (meter_event.go) are not counted.
type meter struct {
	cuda.Device
	account   books
	total     int64       // bytes of the device
	most      int64       // bytes that may ever be taken
	limit     int64       // bytes that may be taken now
	capturing bool        // a CUDA graph is being captured, or may be
	process   *process    // where the other devices are
	stream    cuda.Stream // of the request that is being served

	allocs  map[cuda.Ptr]extent
	handles map[cuda.Handle]piece
	created int64 // pieces so far
	mapped  map[cuda.Ptr]extent
	away    map[cuda.Event]cuda.Device // the events that are of other devices
}

// piece is physical memory from cuMemCreate. The driver gives the handle of a piece that was released to another one, but no serial number
// comes twice.
type piece struct{ size, serial int64 }

func newMeter(dev cuda.Device, total int64, account books, p *process) *meter {
	return &meter{
		Device: dev, account: account, total: total, most: total, limit: total, process: p,
		allocs: map[cuda.Ptr]extent{}, handles: map[cuda.Handle]piece{}, mapped: map[cuda.Ptr]extent{}, away: map[cuda.Event]cuda.Device{},
	}
}

// timed counts calls that began at a time.
func (m *meter) timed(begin time.Time, calls int64) {
	took := int64(time.Since(begin))
	m.account.open()
	defer m.account.close()
	m.account.DriverCalls += calls
	m.account.DriverNS += took
}

func (m *meter) reserved() int64 { return m.account.ReservedBytes[page.All].Current }

// take counts a piece of physical memory.
func (m *meter) take(size int64) {
	m.account.open()
	defer m.account.close()
	for _, kind := range [2]int{page.All, pieceKind(size)} {
		m.account.ReservedBytes[kind].Add(size)
		m.account.Segment[kind].Add(1)
	}
}

func (m *meter) give(size int64) {
	m.account.open()
	defer m.account.close()
	for _, kind := range [2]int{page.All, pieceKind(size)} {
		m.account.ReservedBytes[kind].Sub(size)
		m.account.Segment[kind].Sub(1)
	}
}

func pieceKind(size int64) int {
	if size <= smallPiece {
		return page.Small
	}
	return page.Large
}

// MemAlloc implements cuda.Device.
func (m *meter) MemAlloc(size int64) (cuda.Ptr, error) {
	if err := m.room(size); err != nil {
		return 0, err
	}
	defer m.timed(time.Now(), 1)
	p, err := m.Device.MemAlloc(size)
	if err == nil {
		m.allocs[p] = extent{size: size, stream: m.stream}
		m.take(size)
		m.tell(true, p, size, m.stream)
	}
	return p, err
}

// MemFree implements cuda.Device.
func (m *meter) MemFree(p cuda.Ptr) error {
	if m.capturing {
		return errCapturing
	}
	defer m.timed(time.Now(), 1)
	err := m.Device.MemFree(p)
	if err == nil {
		x := m.allocs[p]
		m.give(x.size)
		delete(m.allocs, p)
		m.tell(false, p, x.size, x.stream)
	}
	return err
}

// Create implements cuda.Device.
func (m *meter) Create(size int64) (cuda.Handle, error) {
	if err := m.room(size); err != nil {
		return 0, err
	}
	defer m.timed(time.Now(), 1)
	h, err := m.Device.Create(size)
	if err == nil {
		m.created++
		m.handles[h] = piece{size, m.created}
		m.take(size)
	}
	return h, err
}

// Release implements cuda.Device.
func (m *meter) Release(h cuda.Handle) error {
	defer m.timed(time.Now(), 1)
	err := m.Device.Release(h)
	if err == nil {
		m.give(m.handles[h].size)
		delete(m.handles, h)
	}
	return err
}

// AddressReserve implements cuda.Device.
func (m *meter) AddressReserve(size int64) (cuda.Ptr, error) {
	defer m.timed(time.Now(), 1)
	return m.Device.AddressReserve(size)
}

// AddressFree implements cuda.Device.
func (m *meter) AddressFree(p cuda.Ptr, size int64) error {
	defer m.timed(time.Now(), 1)
	return m.Device.AddressFree(p, size)
}

// Map implements cuda.Device.
func (m *meter) Map(p cuda.Ptr, h cuda.Handle) error {
	defer m.timed(time.Now(), 1)
	err := m.Device.Map(p, h)
	if err == nil {
		m.mapped[p] = extent{size: m.handles[h].size, handle: h, stream: m.stream}
	}
	return err
}

// SetAccess implements cuda.Device.
func (m *meter) SetAccess(p cuda.Ptr, size int64) error {
	defer m.timed(time.Now(), m.pieces(p, size))
	err := m.Device.SetAccess(p, size)
	if err == nil {
		m.tellRange(true, p, size)
	}
	return err
}

// Unmap implements cuda.Device.
func (m *meter) Unmap(p cuda.Ptr, size int64) error {
	if m.capturing {
		return errCapturing
	}
	defer m.timed(time.Now(), m.pieces(p, size))
	err := m.Device.Unmap(p, size)
	if err == nil {
		m.tellRange(false, p, size)
	}
	for at := p; err == nil && at < p+cuda.Ptr(size); {
		next := at + cuda.Ptr(max(m.mapped[at].size, cuda.Granularity))
		delete(m.mapped, at)
		at = next
	}
	return err
}

// pieces counts the mappings in a range.
func (m *meter) pieces(p cuda.Ptr, size int64) (n int64) {
	for at := p; at < p+cuda.Ptr(size); n++ {
		at += cuda.Ptr(max(m.mapped[at].size, cuda.Granularity))
	}
	return n
}
