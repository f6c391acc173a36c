package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Placement is what a plan says of one request: its size and where it goes.
type Placement struct {
	Size   int64 // bytes as requested
	Arena  int32
	Offset int64 // bytes from the start of the arena
}

// Planned serves requests from a plan: the n-th request gets the n-th placement. Each arena is one allocation of the device, made at the
// start. A request that is not the one that the plan expects goes to PyTorch's allocator, and the plan waits for its next.
type Planned struct {
	besideTorch
	plan  []Placement
	next  int
	bases []cuda.Ptr
	sizes map[cuda.Ptr]int64
}

// NewPlanned returns an allocator that takes the arenas, of these sizes in bytes, from dev.
func NewPlanned(dev cuda.Device, plan []Placement, arenas []int64) (*Planned, error) {
	beside, err := newBesideTorch(dev)
	if err != nil {
		return nil, err
	}
	p := &Planned{besideTorch: beside, plan: plan, sizes: map[cuda.Ptr]int64{}}
	p.empty = p.Empty
	for i, size := range arenas {
		base, err := dev.MemAlloc(size)
		if errors.Is(err, cuda.ErrOutOfMemory) {
			return nil, p.oom(size)
		} else if err != nil {
			return nil, fmt.Errorf("allocate arena %d: %w", i, err)
		}
		p.bases = append(p.bases, base)
		p.stats.reserve(cuda.AllocSize(size))
	}
	return p, nil
}

// Malloc implements Allocator.
func (p *Planned) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	if p.next == len(p.plan) || p.plan[p.next].Size != size {
		return p.mallocTorch(size, stream, pool)
	}
	place := p.plan[p.next]
	ptr := p.bases[place.Arena] + cuda.Ptr(place.Offset)
	if _, taken := p.sizes[ptr]; taken {
		return p.mallocTorch(size, stream, pool)
	}
	p.next++
	p.sizes[ptr] = roundUp(size, minBlockSize)
	p.stats.allocate(p.sizes[ptr])
	p.follow()
	return ptr, nil
}

// Free implements Allocator.
func (p *Planned) Free(ptr cuda.Ptr) error {
	size, ok := p.sizes[ptr]
	if !ok {
		return p.torch.Free(ptr)
	}
	delete(p.sizes, ptr)
	p.stats.Allocated -= size
	return nil
}

// RecordStream implements Allocator. The plan already keeps a tensor's place until the last stream is done with it.
func (p *Planned) RecordStream(ptr cuda.Ptr, stream cuda.Stream) error {
	if _, ok := p.sizes[ptr]; ok {
		return nil
	}
	return p.torch.RecordStream(ptr, stream)
}

// Empty implements Allocator. The arenas stay.
func (p *Planned) Empty() error { return p.torch.Empty() }
