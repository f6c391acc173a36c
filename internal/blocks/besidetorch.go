package blocks

import (
	"errors"

	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
)

// besideTorch is the shared part of allocators that leave some requests to PyTorch's allocator, on the same device.
type besideTorch struct {
	torch *Torch
	empty func() error // the Empty of the whole allocator
	stats Stats        // without those of torch, except for the peaks, which are of both
}

func newBesideTorch(dev cuda.Device) (besideTorch, error) {
	torch, err := NewTorch(dev, allocconf.Default())
	return besideTorch{torch: torch}, err
}

// mallocTorch leaves a request to PyTorch's allocator. If that has no room, the whole cache is released and the request is tried again.
func (b *besideTorch) mallocTorch(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	p, err := b.torch.Malloc(size, stream, pool)
	if errors.Is(err, cuda.ErrOutOfMemory) && !b.torch.hasty {
		if err := b.empty(); err != nil {
			return 0, err
		}
		if p, err = b.torch.Malloc(size, stream, pool); errors.Is(err, cuda.ErrOutOfMemory) {
			err = b.oom(size)
		}
	}
	b.follow()
	return p, err
}

// follow updates the peaks of both together. Their own peaks need not be reached at the same time.
func (b *besideTorch) follow() {
	s := &b.torch.stats
	b.stats.PeakReserved = max(b.stats.PeakReserved, b.stats.Reserved+s.Reserved)
	b.stats.PeakAllocated = max(b.stats.PeakAllocated, b.stats.Allocated+s.Allocated)
}

func (b *besideTorch) oom(size int64) error {
	stats := b.Stats()
	return stats.oom(size)
}

// Allocated returns Stats().Allocated, faster.
func (b *besideTorch) Allocated() int64 { return b.stats.Allocated + b.torch.stats.Allocated }

// Stats implements Allocator.
func (b *besideTorch) Stats() Stats {
	s, t := b.stats, b.torch.Stats()
	s.Allocated += t.Allocated
	s.Reserved += t.Reserved
	s.Retries += t.Retries
	return s
}
