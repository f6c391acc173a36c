package blocks

import (
	"errors"

	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
)

// besideTorch is what allocators share that leave some requests to PyTorch's, on the same device.
type besideTorch struct {
	torch *Torch
	empty func() error // the Empty of the whole
	stats Stats        // of what is not left to torch, but for the peaks, which are of both
}

func newBesideTorch(dev cuda.Device) (besideTorch, error) {
	torch, err := NewTorch(dev, allocconf.Default())
	return besideTorch{torch: torch}, err
}

// mallocTorch leaves a request to PyTorch's allocator. If that has no room, what the other one caches is given back, too.
func (b *besideTorch) mallocTorch(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	p, err := b.torch.Malloc(size, stream, pool)
	if errors.Is(err, cuda.ErrOutOfMemory) {
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

// follow keeps the peaks of both together, which need not be reached at the same time.
func (b *besideTorch) follow() {
	s := &b.torch.stats
	b.stats.PeakReserved = max(b.stats.PeakReserved, b.stats.Reserved+s.Reserved)
	b.stats.PeakAllocated = max(b.stats.PeakAllocated, b.stats.Allocated+s.Allocated)
}

func (b *besideTorch) oom(size int64) error {
	stats := b.Stats()
	return stats.oom(size)
}

// Allocated returns Stats().Allocated, in less time.
func (b *besideTorch) Allocated() int64 { return b.stats.Allocated + b.torch.stats.Allocated }

// Stats implements Allocator.
func (b *besideTorch) Stats() Stats {
	s, t := b.stats, b.torch.Stats()
	s.Allocated += t.Allocated
	s.Reserved += t.Reserved
	s.Retries += t.Retries
	return s
}
