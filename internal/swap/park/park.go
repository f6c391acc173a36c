// Package park is a GPU whose memory can leave it for pinned memory of the host and come back: to the same addresses, with the same
// contents, behind the back of the allocator on it, whose handles and addresses stay what they are.
//
// All memory is physical memory that is mapped, also what MemAlloc returns: what cuMemAlloc gives never gets the same address twice. A
// piece that was passed on to others, or came from them, stays where it is.
//
// At each moment a piece has a valid copy on the device or on the host, and often both. What fails on the way leaves it so, and can be
// tried again.
package park

import (
	"fmt"
	"sync"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
)

// Device is a GPU. It is safe for concurrent use. While memory is away, calls that create, map or free memory ask for it and wait.
type Device struct {
	*driver.Device
	want func()

	mu     sync.Mutex
	back   sync.Cond // all memory is here again
	asleep bool      // it may not be
	pieces map[cuda.Handle]*piece
	maps   map[cuda.Ptr]*mapping
	allocs map[cuda.Ptr]*alloc
	last   cuda.Handle
	arena  *arena
	links  []*link // the first is this device's own
	peers  int     // calls of Peers

	reserved []cuda.Ptr // the begins of reserved ranges, in order
}

// piece is physical memory. Its handle, which the allocator knows, is a number that no other piece ever gets.
type piece struct {
	size   int64
	real   cuda.Handle // the driver's, 0 while the memory is away
	held   bool        // the allocator has not released the handle
	passed bool        // others use the memory
	stale  bool        // real has not got its contents back
	at     []*mapping
	slot   [][]byte // where the contents are on the host
}

// mapping is a range of addresses of a piece.
type mapping struct {
	p                  cuda.Ptr
	reserved           cuda.Ptr // the begin of the reserved range that it is in
	piece              *piece
	mapped, accessible bool // now
	opened             bool // SetAccess was called
	peers              int  // how many calls of Peers had come before that
}

// alloc is what MemAlloc returned.
type alloc struct {
	handle cuda.Handle
	size   int64
}

// New returns a device without memory. The pages of its memory on the host come from a NUMA node, -1 for any. want is called with a lock
// held when a call waits for memory that is away; it does not wait itself.
func New(dev *driver.Device, node int, want func()) *Device {
	d := &Device{
		Device: dev, want: want, pieces: map[cuda.Handle]*piece{}, maps: map[cuda.Ptr]*mapping{}, allocs: map[cuda.Ptr]*alloc{},
		arena: newArena(dev, node), links: []*link{{dev: dev}},
	}
	d.back.L = &d.mu
	return d
}

// begin waits until all memory is here, and takes the lock.
func (d *Device) begin() {
	d.mu.Lock()
	for d.asleep {
		d.want()
		d.back.Wait()
	}
}

// Usage is where the memory of a device is, in bytes.
type Usage struct {
	Here, Away int64
	Pinned     int64 // taken from the host
}

// Usage returns where memory is.
func (d *Device) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := Usage{Pinned: d.arena.held()}
	for _, p := range d.pieces {
		if p.real == 0 {
			u.Away += p.size
		} else {
			u.Here += p.size
		}
	}
	return u
}

// Passed notes that others use the memory at some addresses, and returns how many bytes of this device others use.
func (d *Device) Passed(addresses []uint64) (bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range addresses {
		for p, m := range d.maps {
			if cuda.Ptr(a) >= p && cuda.Ptr(a) < p+cuda.Ptr(m.piece.size) {
				m.piece.passed = true
			}
		}
	}
	for _, p := range d.pieces {
		if p.passed {
			bytes += p.size
		}
	}
	return bytes
}

// MemInfo implements cuda.Device. It waits for memory that is away: what is free meanwhile is not for the allocator, which looks before it
// asks.
func (d *Device) MemInfo() (free, total int64, err error) {
	d.begin()
	defer d.mu.Unlock()
	return d.Device.MemInfo()
}

// Create implements cuda.Device.
func (d *Device) Create(size int64) (cuda.Handle, error) {
	d.begin()
	defer d.mu.Unlock()
	return d.create(size)
}

func (d *Device) create(size int64) (cuda.Handle, error) {
	real, err := d.Device.Create(size)
	if err != nil {
		return 0, err
	}
	return d.add(&piece{size: size, real: real, held: true}), nil
}

func (d *Device) add(p *piece) cuda.Handle {
	d.last++
	d.pieces[d.last] = p
	return d.last
}

// Import returns a handle of memory that another process exported. It is never away.
func (d *Device) Import(fd int, size int64) (cuda.Handle, error) {
	d.begin()
	defer d.mu.Unlock()
	real, err := d.Device.Import(fd, size)
	if err != nil {
		return 0, err
	}
	return d.add(&piece{size: size, real: real, held: true, passed: true}), nil
}

// Export returns a file descriptor of memory, which is never away from then on.
func (d *Device) Export(h cuda.Handle) (fd int, err error) {
	d.begin()
	defer d.mu.Unlock()
	p, err := d.piece(h)
	if err != nil {
		return -1, err
	}
	p.passed = true
	return d.Device.Export(p.real)
}

// Allocated returns the physical memory of what MemAlloc returned, and its size.
func (d *Device) Allocated(p cuda.Ptr) (h cuda.Handle, size int64) {
	d.begin()
	defer d.mu.Unlock()
	if a := d.allocs[p]; a != nil {
		return a.handle, a.size
	}
	return 0, 0
}

func (d *Device) piece(h cuda.Handle) (*piece, error) {
	p := d.pieces[h]
	if p == nil {
		return nil, fmt.Errorf("%d is no handle of physical memory", h)
	}
	return p, nil
}

// Release implements cuda.Device.
func (d *Device) Release(h cuda.Handle) error {
	d.begin()
	defer d.mu.Unlock()
	return d.release(h)
}

// release keeps the driver's handle while the memory is mapped: it is what brings the memory back.
func (d *Device) release(h cuda.Handle) error {
	p, err := d.piece(h)
	if err != nil {
		return err
	}
	if len(p.at) == 0 {
		if err := d.Device.Release(p.real); err != nil {
			return err
		}
		p.real = 0
	}
	p.held = false
	d.forget(h, p)
	return nil
}

// forget drops a piece that is gone.
func (d *Device) forget(h cuda.Handle, p *piece) {
	if !p.held && p.real == 0 {
		delete(d.pieces, h)
	}
}
