package blocks

import "gm/internal/cuda"

// besideTorch is what allocators share that leave small requests to PyTorch's, on the same device.
type besideTorch struct {
	small *Torch
	stats Stats // of what is not left to small, but for the peaks, which are of both
}

func newBesideTorch(dev cuda.Device) (besideTorch, error) {
	small, err := NewTorch(dev, DefaultTorchConf())
	return besideTorch{small: small}, err
}

// mallocSmall leaves a request to PyTorch's allocator.
func (b *besideTorch) mallocSmall(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	p, err := b.small.Malloc(size, stream, pool)
	b.follow()
	return p, err
}

// follow keeps the peaks of both together, which need not be reached at the same time.
func (b *besideTorch) follow() {
	s := b.small.Stats()
	b.stats.PeakReserved = max(b.stats.PeakReserved, b.stats.Reserved+s.Reserved)
	b.stats.PeakAllocated = max(b.stats.PeakAllocated, b.stats.Allocated+s.Allocated)
}

func (b *besideTorch) oom(size int64) error {
	stats := b.Stats()
	return stats.oom(size)
}

// Stats implements Allocator.
func (b *besideTorch) Stats() Stats {
	s, small := b.stats, b.small.Stats()
	s.Allocated += small.Allocated
	s.Reserved += small.Reserved
	s.Retries += small.Retries
	return s
}
