package blocks

import (
	"fmt"

	"gm/internal/cuda"
)

// Floor is no allocator but the bound of all: it reserves exactly the bytes that are live, as if memory could be laid out
// anew at every request. Its addresses are names, not places.
type Floor struct {
	capacity int64
	live     map[cuda.Ptr]int64
	next     cuda.Ptr
	stats    Stats
}

// NewFloor returns the bound for a device of capacity bytes.
func NewFloor(capacity int64) *Floor { return &Floor{capacity: capacity, live: map[cuda.Ptr]int64{}} }

// Malloc implements Allocator.
func (f *Floor) Malloc(size int64, _ cuda.Stream, _ Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	rounded := roundUp(size, minBlockSize)
	if rounded > f.capacity-f.stats.Reserved {
		return 0, f.stats.oom(size)
	}
	f.next += minBlockSize
	f.live[f.next] = rounded
	f.stats.allocate(rounded)
	f.stats.reserve(rounded)
	return f.next, nil
}

// Free implements Allocator.
func (f *Floor) Free(p cuda.Ptr) error {
	if p == 0 {
		return nil
	}
	size, ok := f.live[p]
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	delete(f.live, p)
	f.stats.Allocated -= size
	f.stats.Reserved -= size
	return nil
}

// RecordStream implements Allocator. The floor counts a byte until its owner gives it back.
func (f *Floor) RecordStream(cuda.Ptr, cuda.Stream) error { return nil }

// Empty implements Allocator.
func (f *Floor) Empty() error { return nil }

// Stats implements Allocator.
func (f *Floor) Stats() Stats { return f.stats }
