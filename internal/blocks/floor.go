package blocks

import (
	"fmt"

	"gm/internal/cuda"
)

var floorEntry = Entry{
	Name: "floor", About: "the lower bound for any allocator: the bytes that are live", Bound: true, Imaginary: true,
	configure: withoutSettings(func(dev cuda.Device, job *Job) (Allocator, error) { return NewFloor(dev, job.align()) }),
}

// Floor is the lower bound for any allocator, and no real allocator: it reserves exactly the bytes that are in use, as if memory could be
// rearranged at every request. Its addresses only identify blocks.
type Floor struct {
	capacity int64
	align    int64
	index    index
	sizes    []int64 // by tensor, rounded up
	streams  []cuda.Stream
	lender   lender
	stats    Stats
}

// NewFloor returns the bound for dev, from which it takes no memory. Each request counts rounded up to a multiple of align bytes.
func NewFloor(dev cuda.Device, align int64) (*Floor, error) {
	_, total, err := dev.MemInfo()
	if err != nil {
		return nil, fmt.Errorf("read the size of the device: %w", err)
	}
	f := &Floor{capacity: total, align: align, index: newIndex()}
	f.lender = newLender(dev, func(t int32) { f.stats.Reserved -= f.sizes[t] })
	return f, nil
}

// Malloc implements Allocator.
func (f *Floor) Malloc(size int64, stream cuda.Stream, _ Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	if err := f.lender.process(); err != nil {
		return 0, err
	}
	rounded := roundUp(size, f.align)
	if rounded > f.capacity-f.stats.Reserved {
		if err := f.lender.synchronize(); err != nil {
			return 0, err
		}
	}
	if rounded > f.capacity-f.stats.Reserved {
		return 0, f.stats.oom(size)
	}
	f.sizes, f.streams = append(f.sizes, rounded), append(f.streams, stream)
	p := cuda.Ptr(len(f.sizes))
	f.index.Put(p, int32(len(f.sizes)-1))
	f.stats.allocate(rounded)
	f.stats.reserve(rounded)
	return p, nil
}

// Free implements Allocator.
func (f *Floor) Free(p cuda.Ptr) error {
	if p == 0 {
		return nil
	}
	t, ok := f.index.Take(p)
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	f.stats.Allocated -= f.sizes[t]
	if f.lender.lent(t) {
		return f.lender.await(t)
	}
	f.stats.Reserved -= f.sizes[t]
	return nil
}

// RecordStream implements Allocator.
func (f *Floor) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	if p == 0 {
		return nil
	}
	t, ok := f.index.Get(p)
	if !ok {
		return fmt.Errorf("record stream of %#x: %w", p, errUnknownAddress)
	}
	if stream != f.streams[t] {
		f.lender.borrow(t, stream)
	}
	return nil
}

// Empty implements Allocator.
func (f *Floor) Empty() error { return f.lender.synchronize() }

// Stats implements Allocator.
func (f *Floor) Stats() Stats { return f.stats }

// Holdings implements Allocator: everything, as one holding.
func (f *Floor) Holdings() []Holding {
	h := Holding{Size: f.stats.Reserved, Round: func(size int64) int64 { return roundUp(size, f.align) }}
	f.index.Each(func(p cuda.Ptr, t *int32) { h.Uses = append(h.Uses, Use{p, f.sizes[*t]}) })
	for t := range f.lender.events {
		h.Pending += f.sizes[t]
	}
	return []Holding{h}
}
