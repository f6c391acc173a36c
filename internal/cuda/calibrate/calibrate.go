// Package calibrate measures the times of the driver's memory and event calls on a GPU.
package calibrate

import (
	"fmt"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

const mib = 1 << 20

// sizes are those that memory is measured for, in bytes, and those that addresses are reserved for beyond them.
var (
	sizes  = [...]int64{2 * mib, 32 * mib, 128 * mib, 512 * mib, 2048 * mib}
	ranges = [...]int64{16 << 30, 256 << 30, 4 << 40, 64 << 40}
)

// Each call is measured in rounds of several calls in a row, for several pieces of memory at once, since an allocator obtains and releases
// memory in bursts.
const (
	rounds = 15
	burst  = 8
	events = 64 // timed together, since one is too fast to time
)

// Steps is the number of times that Costs calls done.
const Steps = len(sizes) + len(ranges) + 1

// clearing is an upper bound of the time in which a driver clears a released MiB: twice that of an H200.
const clearing = 5 * time.Microsecond

// Costs measures every call of the table, each for the sizes that its cost depends on, and returns the medians. It uses at most a quarter
// of the device's free memory, and leaves out sizes that do not fit. For meaningful figures the device must be idle, and the two streams
// empty. Costs calls done after each step. After an error, memory that it allocated stays allocated.
func Costs(d cuda.Device, streams [2]cuda.Stream, done func()) (sim.CostTable, error) {
	return costs(d, streams, done, time.Sleep)
}

func costs(d cuda.Device, streams [2]cuda.Stream, done func(), sleep func(time.Duration)) (sim.CostTable, error) {
	free, _, err := d.MemInfo()
	if err != nil {
		return sim.CostTable{}, err
	}
	budget := free / 4
	if budget < sizes[0] {
		return sim.CostTable{}, fmt.Errorf("%d bytes of device memory are free, at least %d are needed", free, 4*sizes[0])
	}
	m := &meter{d: d, sleep: sleep}
	for _, size := range sizes {
		if size <= budget {
			n := min(budget/size, burst)
			m.allocate(size, int(n))
			m.pieces(size, int(n))
			m.reserve(size)
		}
		done()
	}
	for _, size := range ranges {
		m.reserveLarge(size)
		done()
	}
	m.events(streams)
	done()
	return m.table(), m.err
}

// allocate measures plain memory that is clear.
func (m *meter) allocate(size int64, n int) {
	ptrs := make([]cuda.Ptr, n)
	for range rounds {
		m.rest(size * int64(n))
		m.each(sim.MemAlloc, size, n, func(i int) (err error) {
			ptrs[i], err = m.d.MemAlloc(size)
			return err
		})
		m.each(sim.MemFree, size, n, func(i int) error { return m.d.MemFree(ptrs[i]) })
	}
}

// pieces measures physical memory, in handles of one size that are mapped side by side. They are created when the memory is clear, and
// again when it was released just before. The first setting of access to clear memory takes longer than setting it again at another
// address; the difference is a cost of new memory and is counted with cuMemCreate.
//
// The driver starts clearing memory when it is released, so a part of that time is hidden behind the calls that release the rest.
func (m *meter) pieces(size int64, n int) {
	all := size * int64(n)
	p := m.addresses(all)
	handles := make([]cuda.Handle, n)
	for range rounds {
		m.rest(all)
		create, access := m.create(p, size, handles)
		again := m.mapAll(p, size, handles)
		m.add(sim.Create, size, create+max(0, access-again))
		m.add(sim.SetAccess, size, again)
		release := m.release(size, handles)
		createAtOnce, accessAtOnce := m.create(p, size, handles)
		m.add(sim.Clear, size, release+max(0, createAtOnce+accessAtOnce-create-access))
		m.release(size, handles)
	}
	m.do(func() error { return m.d.AddressFree(p, all) })
}

// create creates the handles and maps them for the first time. It returns the times of creation and of setting access, per handle.
func (m *meter) create(p cuda.Ptr, size int64, handles []cuda.Handle) (create, access time.Duration) {
	create = m.timeEach(sim.Create, size, len(handles), func(i int) (err error) {
		handles[i], err = m.d.Create(size)
		return err
	})
	return create, m.mapAll(p, size, handles)
}

// release releases the handles and returns the time per handle.
func (m *meter) release(size int64, handles []cuda.Handle) time.Duration {
	took := m.timeEach(sim.Release, size, len(handles), func(i int) error { return m.d.Release(handles[i]) })
	m.add(sim.Release, size, took)
	return took
}

// mapAll maps the handles, sets access to them, and unmaps them. It returns the time of setting access, per handle.
func (m *meter) mapAll(p cuda.Ptr, size int64, handles []cuda.Handle) time.Duration {
	n := len(handles)
	all := size * int64(n)
	m.each(sim.Map, size, n, func(i int) error { return m.d.Map(p+cuda.Ptr(size)*cuda.Ptr(i), handles[i]) })
	access := m.time(sim.SetAccess, size, n, func() error { return m.d.SetAccess(p, all) })
	m.add(sim.Unmap, size, m.time(sim.Unmap, size, n, func() error { return m.d.Unmap(p, all) }))
	return access
}

// addresses reserves a range without measuring it.
func (m *meter) addresses(size int64) (p cuda.Ptr) {
	m.do(func() (err error) {
		p, err = m.d.AddressReserve(size)
		return err
	})
	return p
}

func (m *meter) reserve(size int64) {
	var ptrs [burst]cuda.Ptr
	for range rounds {
		m.each(sim.AddressReserve, size, burst, func(i int) (err error) {
			ptrs[i], err = m.d.AddressReserve(size)
			return err
		})
		m.each(sim.AddressFree, size, burst, func(i int) error { return m.d.AddressFree(ptrs[i], size) })
	}
}

// reserveLarge measures large ranges one by one, as far as there are addresses for them.
func (m *meter) reserveLarge(size int64) {
	p, err := m.d.AddressReserve(size)
	if err != nil {
		return
	}
	m.do(func() error { return m.d.AddressFree(p, size) })
	for range rounds {
		m.each(sim.AddressReserve, size, 1, func(int) (err error) {
			p, err = m.d.AddressReserve(size)
			return err
		})
		m.each(sim.AddressFree, size, 1, func(int) error { return m.d.AddressFree(p, size) })
	}
}

// events measures events of one stream, for which the other waits. All have passed when they are queried.
func (m *meter) events(streams [2]cuda.Stream) {
	var all [events]cuda.Event
	for range rounds {
		m.each(sim.EventRecord, 0, events, func(i int) (err error) {
			all[i], err = m.d.EventRecord(streams[0])
			return err
		})
		m.do(func() error { return m.d.StreamSynchronize(streams[0]) })
		m.each(sim.EventQuery, 0, events, func(i int) error {
			_, err := m.d.EventQuery(all[i])
			return err
		})
		m.each(sim.StreamWaitEvent, 0, events, func(i int) error { return m.d.StreamWaitEvent(streams[1], all[i]) })
		m.do(func() error { return m.d.StreamSynchronize(streams[1]) })
		for _, e := range all {
			m.do(func() error { return m.d.EventDestroy(e) })
		}
	}
}
