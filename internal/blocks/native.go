package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Native asks the driver for every request: cudaMalloc and cudaFree, nothing cached.
type Native struct {
	dev   cuda.Device
	sizes map[cuda.Ptr]int64
	stats Stats
}

// NewNative returns an allocator on dev.
func NewNative(dev cuda.Device) *Native { return &Native{dev: dev, sizes: map[cuda.Ptr]int64{}} }

// Malloc implements Allocator.
func (n *Native) Malloc(size int64, _ cuda.Stream, _ Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	p, err := n.dev.MemAlloc(size)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return 0, n.stats.oom(size)
	} else if err != nil {
		return 0, fmt.Errorf("allocate: %w", err)
	}
	n.sizes[p] = size
	n.stats.allocate(roundUp(size, minBlockSize))
	n.stats.reserve(cuda.AllocSize(size))
	return p, nil
}

// Free implements Allocator. cudaFree waits for the whole device, so that no stream can still use the memory.
func (n *Native) Free(p cuda.Ptr) error {
	if p == 0 {
		return nil
	}
	size, ok := n.sizes[p]
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	delete(n.sizes, p)
	n.stats.Allocated -= roundUp(size, minBlockSize)
	n.stats.Reserved -= cuda.AllocSize(size)
	if err := n.dev.MemFree(p); err != nil {
		return fmt.Errorf("free: %w", err)
	}
	return nil
}

// RecordStream implements Allocator: there is nothing to do, see Free.
func (n *Native) RecordStream(cuda.Ptr, cuda.Stream) error { return nil }

// Empty implements Allocator: nothing is cached.
func (n *Native) Empty() error { return nil }

// Stats implements Allocator.
func (n *Native) Stats() Stats { return n.stats }
