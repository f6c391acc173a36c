package live

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// meter is a device as an allocator sees it. It times each call, computes its cost by a table, limits what is taken, and can release all of
// it.
type meter struct {
	cuda.Device
	costs    *sim.CostTable
	virtual  bool          // calls take the time of the table
	empty    time.Duration // what the timer measures when nothing is called
	capacity int64         // bytes that may be taken
	clearing sim.Clearing  // of what is taken and released
	begin    time.Time

	account Account
	host    time.Duration // that passed in calls
	driver  time.Duration // that the calls took: the same as host, unless virtual

	allocs  map[cuda.Ptr]int64 // sizes taken from the device
	ranges  map[cuda.Ptr]int64
	handles map[cuda.Handle]*piece
	mapped  map[cuda.Ptr]*piece

	holding int32 // the tensor for which recorded events are held, if any
	held    map[cuda.Event]int32
	holds   map[int32][]cuda.Event // by tensor
}

// piece is physical memory.
type piece struct {
	size     int64
	mappings int
	released bool
	accessed bool // it was readable and writable somewhere
}

// noTensor stands for no tensor.
const noTensor = -1

// newMeter returns a meter for dev. capacity is how many of its bytes may be taken, 0 for all.
func newMeter(dev cuda.Device, costs *sim.CostTable, capacity int64) (*meter, error) {
	_, total, err := dev.MemInfo()
	if err != nil {
		return nil, fmt.Errorf("read the size of the device: %w", err)
	}
	if capacity == 0 {
		capacity = total
	}
	_, virtual := dev.(*Simulated)
	return &meter{
		Device: dev, costs: costs, virtual: virtual, empty: timerCost(), capacity: min(capacity, total),
		clearing: sim.NewClearing(costs), begin: time.Now(),
		allocs: map[cuda.Ptr]int64{}, ranges: map[cuda.Ptr]int64{}, handles: map[cuda.Handle]*piece{}, mapped: map[cuda.Ptr]*piece{},
		holding: noTensor, held: map[cuda.Event]int32{}, holds: map[int32][]cuda.Event{},
	}, nil
}

// timerCost returns the time that is measured when nothing happens.
func timerCost() time.Duration {
	least := time.Hour
	for range 1000 {
		begin := time.Now()
		least = min(least, time.Since(begin))
	}
	return least
}

// count adds n calls that took host on the clock and cost by the table.
func (m *meter) count(call Call, host time.Duration, n int64, cost time.Duration) {
	took := max(0, host-m.empty)
	if m.virtual {
		took = cost
	}
	m.host += host
	m.driver += took
	u := &m.account[call]
	u.Calls += n
	u.Measured += took
	u.Modelled += cost
}

// cost returns what one call for size bytes costs by the table.
func (m *meter) cost(call sim.Call, size int64) time.Duration { return m.costs[call].At(size) }

// now returns the time that has passed for the driver.
func (m *meter) now() time.Duration {
	if m.virtual {
		return m.driver
	}
	return time.Since(m.begin)
}

// taken returns the bytes that are taken from the device.
func (m *meter) taken() int64 { return m.clearing.Used() }

// room returns an error if size more bytes exceed the capacity.
func (m *meter) room(size int64) error {
	if taken := m.taken(); size > m.capacity-taken {
		return fmt.Errorf("%w: %d bytes requested, %d taken of %d", cuda.ErrOutOfMemory, size, taken, m.capacity)
	}
	return nil
}

// MemAlloc implements cuda.Device.
func (m *meter) MemAlloc(size int64) (cuda.Ptr, error) {
	taken := cuda.AllocSize(size)
	if err := m.room(taken); err != nil {
		return 0, err
	}
	at, begin := m.now(), time.Now()
	p, err := m.Device.MemAlloc(size)
	host, cost := time.Since(begin), m.cost(sim.MemAlloc, size)
	if err == nil {
		m.allocs[p] = taken
		cost += m.clearing.Take(taken, at)
	}
	m.count(Call(sim.MemAlloc), host, 1, cost)
	return p, err
}

// MemFree implements cuda.Device.
func (m *meter) MemFree(p cuda.Ptr) error {
	taken := m.allocs[p]
	begin := time.Now()
	err := m.Device.MemFree(p)
	m.count(Call(sim.MemFree), time.Since(begin), 1, m.cost(sim.MemFree, taken))
	if err == nil {
		m.clearing.Give(taken, m.now())
		delete(m.allocs, p)
	}
	return err
}

// AddressReserve implements cuda.Device.
func (m *meter) AddressReserve(size int64) (cuda.Ptr, error) {
	begin := time.Now()
	p, err := m.Device.AddressReserve(size)
	m.count(Call(sim.AddressReserve), time.Since(begin), 1, m.cost(sim.AddressReserve, size))
	if err == nil {
		m.ranges[p] = size
	}
	return p, err
}

// AddressFree implements cuda.Device.
func (m *meter) AddressFree(p cuda.Ptr, size int64) error {
	begin := time.Now()
	err := m.Device.AddressFree(p, size)
	m.count(Call(sim.AddressFree), time.Since(begin), 1, m.cost(sim.AddressFree, size))
	if err == nil {
		delete(m.ranges, p)
	}
	return err
}

// Create implements cuda.Device.
func (m *meter) Create(size int64) (cuda.Handle, error) {
	if err := m.room(size); err != nil {
		return 0, err
	}
	at, begin := m.now(), time.Now()
	h, err := m.Device.Create(size)
	host, cost := time.Since(begin), m.cost(sim.Create, size)
	if err == nil {
		m.handles[h] = &piece{size: size}
		cost += m.clearing.Take(size, at)
	}
	m.count(Call(sim.Create), host, 1, cost)
	return h, err
}

// Release implements cuda.Device.
func (m *meter) Release(h cuda.Handle) error {
	p := m.handles[h]
	if p == nil {
		return fmt.Errorf("cuMemRelease of handle %d, which is not held", h)
	}
	begin := time.Now()
	err := m.Device.Release(h)
	m.count(Call(sim.Release), time.Since(begin), 1, m.cost(sim.Release, p.size))
	if err == nil {
		delete(m.handles, h)
		p.released = true
		m.drop(p)
	}
	return err
}

// drop counts a piece that is neither held nor mapped as released.
func (m *meter) drop(p *piece) {
	if p.released && p.mappings == 0 {
		m.clearing.Give(p.size, m.now())
	}
}

// Map implements cuda.Device.
func (m *meter) Map(p cuda.Ptr, h cuda.Handle) error {
	q := m.handles[h]
	if q == nil {
		return fmt.Errorf("cuMemMap of handle %d, which is not held", h)
	}
	begin := time.Now()
	err := m.Device.Map(p, h)
	m.count(Call(sim.Map), time.Since(begin), 1, m.cost(sim.Map, q.size))
	if err == nil {
		m.mapped[p] = q
		q.mappings++
	}
	return err
}

// SetAccess implements cuda.Device.
func (m *meter) SetAccess(p cuda.Ptr, size int64) error {
	begin := time.Now()
	err := m.Device.SetAccess(p, size)
	host := time.Since(begin)
	call, n, cost := Call(sim.SetAccess), int64(0), time.Duration(0)
	for _, q := range m.pieces(p, size) {
		if !q.accessed {
			call, q.accessed = Call(sim.Create), err == nil
		}
		n++
		cost += m.cost(sim.SetAccess, q.size)
	}
	m.count(call, host, n, cost)
	return err
}

// Unmap implements cuda.Device.
func (m *meter) Unmap(p cuda.Ptr, size int64) error {
	pieces := m.pieces(p, size)
	var cost time.Duration
	for _, q := range pieces {
		cost += m.cost(sim.Unmap, q.size)
	}
	begin := time.Now()
	err := m.Device.Unmap(p, size)
	m.count(Call(sim.Unmap), time.Since(begin), int64(len(pieces)), cost)
	if err != nil {
		return err
	}
	for _, q := range pieces {
		delete(m.mapped, p)
		p += cuda.Ptr(q.size)
		q.mappings--
		m.drop(q)
	}
	return nil
}

// pieces returns the pieces that are mapped consecutively from p on, within size bytes.
func (m *meter) pieces(p cuda.Ptr, size int64) []*piece {
	var all []*piece
	for end := p + cuda.Ptr(size); p < end; {
		q := m.mapped[p]
		if q == nil {
			break
		}
		all = append(all, q)
		p += cuda.Ptr(q.size)
	}
	return all
}

// MemInfo implements cuda.Device: no more is free than may be taken.
func (m *meter) MemInfo() (free, total int64, err error) {
	begin := time.Now()
	free, _, err = m.Device.MemInfo()
	m.count(MemInfo, time.Since(begin), 1, 0)
	return max(0, min(free, m.capacity-m.taken())), m.capacity, err
}

// releaseAll releases everything that is still taken, and does not count these calls. On a GPU it waits until the memory is cleared, as the
// next run would.
func (m *meter) releaseAll() error {
	m.clearing.Give(m.taken(), m.now())
	defer func() {
		if !m.virtual {
			time.Sleep(2 * m.clearing.Left(m.now()))
		}
	}()
	var errs []error
	for p, q := range m.mapped {
		errs = append(errs, m.Device.Unmap(p, q.size))
	}
	for h := range m.handles {
		errs = append(errs, m.Device.Release(h))
	}
	for p, size := range m.ranges {
		errs = append(errs, m.Device.AddressFree(p, size))
	}
	for p := range m.allocs {
		errs = append(errs, m.Device.MemFree(p))
	}
	return errors.Join(errs...)
}
