// Package sim is a simulated GPU: it keeps account of memory, addresses and events as the CUDA driver does, refuses what the driver
// refuses, and sums what each call would have cost.
package sim

import (
	"fmt"
	"math"
	"time"

	"gm/internal/cuda"
)

// Device is a simulated GPU. Its time is virtual: driver calls and Job advance it.
type Device struct {
	capacity int64
	costs    CostTable
	clearing Clearing // also counts the bytes in use

	calls   [NumCalls]int64
	elapsed time.Duration
	job     time.Duration // time of the job, without the calls

	allocs   map[cuda.Ptr]int64      // cuMemAlloc: sizes taken from the device
	reserved []*reservation          // ranges of addresses, ordered
	physical map[cuda.Handle]*memory // handles not yet released, or released but still mapped
	mappings map[cuda.Ptr]cuda.Handle

	nextPtr    cuda.Ptr
	nextHandle cuda.Handle
	nextEvent  cuda.Event
	pending    map[cuda.Event]bool
	holding    bool
	recorded   []Range
}

// Range is a stretch of device addresses.
type Range struct {
	Addr cuda.Ptr
	Size int64
}

type memory struct {
	size     int64
	mapped   int
	released bool
}

const firstAddress = 0x7f0000000000

// Endless is the size of a device that no job fills, in bytes: 4 TiB, many times that of any GPU. It is finite, since a hostile trace could
// fill it page by page.
const Endless = 4 << 40

// New returns a device of capacity bytes; 0 is Endless.
func New(capacity int64, costs CostTable) *Device {
	if capacity == 0 {
		capacity = Endless
	}
	d := &Device{
		capacity: capacity, costs: costs,
		allocs: map[cuda.Ptr]int64{}, physical: map[cuda.Handle]*memory{}, mappings: map[cuda.Ptr]cuda.Handle{},
		pending: map[cuda.Event]bool{}, nextPtr: firstAddress,
	}
	d.clearing = NewClearing(&d.costs)
	return d
}

// Calls returns how often a call was made; for Map, SetAccess and Unmap, the number of handles in their ranges.
func (d *Device) Calls(call Call) int64 { return d.calls[call] }

// MemoryCalls returns the number of calls that allocate, free, map or unmap memory: all except those on events.
func (d *Device) MemoryCalls() int64 {
	var n int64
	for call := MemAlloc; call <= Unmap; call++ {
		n += d.calls[call]
	}
	return n
}

// Elapsed returns the time that all calls so far would have taken, including waits for memory to be cleared.
func (d *Device) Elapsed() time.Duration { return d.elapsed }

// Job sets how long the job has worked since its beginning, without the calls. In that time the driver clears memory.
func (d *Device) Job(worked time.Duration) { d.job = min(max(0, worked), maxJob) }

// maxJob exceeds the time of any job. It keeps sums within their range.
const maxJob = math.MaxInt64 / 2

func (d *Device) now() time.Duration { return d.elapsed + d.job }

// Used returns the bytes of physical memory in use.
func (d *Device) Used() int64 { return d.clearing.used }

func (d *Device) charge(call Call, size int64, times int64) {
	d.calls[call] += times
	d.elapsed += d.costs[call].At(size) * time.Duration(times)
}

// take waits until size bytes are clear, and counts them as in use.
func (d *Device) take(size int64) error {
	if free := d.capacity - d.clearing.used; size > free {
		return fmt.Errorf("%w: %d bytes asked, %d of %d free", cuda.ErrOutOfMemory, size, free, d.capacity)
	}
	d.elapsed += d.clearing.Take(size, d.now())
	return nil
}

// address returns the start of size bytes of unused addresses.
func (d *Device) address(size int64) cuda.Ptr {
	p := d.nextPtr
	d.nextPtr += cuda.Ptr(roundUp(size, cuda.Granularity))
	return p
}

// MemAlloc implements cuda.Device. It takes cuda.AllocSize.
func (d *Device) MemAlloc(size int64) (cuda.Ptr, error) {
	if size <= 0 {
		return 0, fmt.Errorf("cuMemAlloc of %d bytes", size)
	}
	taken := cuda.AllocSize(size)
	err := d.take(taken)
	d.charge(MemAlloc, size, 1)
	if err != nil {
		return 0, err
	}
	p, ok := d.recordedAddress(taken)
	if !ok {
		p = d.address(taken)
	}
	d.allocs[p] = taken
	return p, nil
}

// Follow makes MemAlloc return the addresses that a real device returned for the same requests, in this order, as long as the requests
// are the same and the addresses are free.
func (d *Device) Follow(recorded []Range) {
	d.recorded = recorded
	for _, r := range recorded {
		d.nextPtr = max(d.nextPtr, cuda.Ptr(roundUp(int64(r.Addr)+r.Size, cuda.Granularity)))
	}
}

func (d *Device) recordedAddress(size int64) (cuda.Ptr, bool) {
	if len(d.recorded) == 0 {
		return 0, false
	}
	r := d.recorded[0]
	d.recorded = d.recorded[1:]
	free := r.Size == size
	for p, n := range d.allocs {
		free = free && (r.Addr+cuda.Ptr(size) <= p || p+cuda.Ptr(n) <= r.Addr)
	}
	if !free {
		d.recorded = nil
	}
	return r.Addr, free
}

// MemFree implements cuda.Device.
func (d *Device) MemFree(p cuda.Ptr) error {
	taken, ok := d.allocs[p]
	if !ok {
		return fmt.Errorf("cuMemFree of %#x, which is not allocated", p)
	}
	d.charge(MemFree, taken, 1)
	delete(d.allocs, p)
	d.clearing.Give(taken, d.now())
	return nil
}

// EventRecord returns an event that has already passed, unless events are held.
func (d *Device) EventRecord(cuda.Stream) (cuda.Event, error) {
	d.charge(EventRecord, 0, 1)
	d.nextEvent++
	if d.holding {
		d.pending[d.nextEvent] = true
	}
	return d.nextEvent, nil
}

// EventQuery implements cuda.Device.
func (d *Device) EventQuery(e cuda.Event) (bool, error) {
	d.charge(EventQuery, 0, 1)
	return !d.pending[e], nil
}

// EventSynchronize implements cuda.Device.
func (d *Device) EventSynchronize(e cuda.Event) error {
	delete(d.pending, e)
	return nil
}

// StreamWaitEvent implements cuda.Device.
func (d *Device) StreamWaitEvent(cuda.Stream, cuda.Event) error {
	d.charge(StreamWaitEvent, 0, 1)
	return nil
}

// EventDestroy implements cuda.Device.
func (d *Device) EventDestroy(e cuda.Event) error {
	delete(d.pending, e)
	return nil
}

// StreamSynchronize implements cuda.Device: the work of a simulated stream is always done.
func (d *Device) StreamSynchronize(cuda.Stream) error { return nil }

// MemInfo implements cuda.Device.
func (d *Device) MemInfo() (free, total int64, err error) {
	return d.capacity - d.clearing.used, d.capacity, nil
}

// Hold runs record and returns the events recorded by it; they stay pending until Complete.
func (d *Device) Hold(record func()) []cuda.Event {
	first := d.nextEvent + 1
	d.holding = true
	record()
	d.holding = false
	var held []cuda.Event
	for e := first; e <= d.nextEvent; e++ {
		held = append(held, e)
	}
	return held
}

// Complete lets held events pass.
func (d *Device) Complete(events []cuda.Event) {
	for _, e := range events {
		delete(d.pending, e)
	}
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }
