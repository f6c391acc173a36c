package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

var plannedEntry = Entry{
	Name: "planned", About: "offsets solved in advance, or those of the plan that was read", Planned: true, OneAddress: true,
	configure: withoutSettings(func(dev cuda.Device, job *Job) (Allocator, error) {
		return NewPlanned(dev, job.Placements, job.Arenas, job.align())
	}),
}

// Placement is the part of a plan for one request: its size and where it goes.
type Placement struct {
	Size   int64 // bytes as requested
	Arena  int32
	Offset int64 // bytes from the start of the arena
}

// Planned serves requests from a plan: the n-th request gets the n-th placement. Each arena is one allocation of the device, made at the
// start. A request that the plan does not expect, or whose place is still in use, goes to PyTorch's allocator. The plan then waits for the
// request that it expects.
type Planned struct {
	besideTorch
	plan   []Placement
	align  int64
	next   int
	arenas []int64 // sizes, in bytes
	bases  []cuda.Ptr
	live   map[cuda.Ptr]int32 // by address, the placement
	taken  []freeSet          // by arena, what is live there, by (offset, address)
}

// NewPlanned returns an allocator that takes the arenas, of these sizes in bytes, from dev. Each request takes a multiple of align
// bytes of its arena.
func NewPlanned(dev cuda.Device, plan []Placement, arenas []int64, align int64) (*Planned, error) {
	beside, err := newBesideTorch(dev)
	if err != nil {
		return nil, err
	}
	p := &Planned{
		besideTorch: beside, plan: plan, align: align, arenas: arenas, live: map[cuda.Ptr]int32{}, taken: make([]freeSet, len(arenas)),
	}
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
	if !p.vacant(&place) {
		return p.mallocTorch(size, stream, pool)
	}
	p.taken[place.Arena].insert(free{size: place.Offset, ptr: ptr, id: int32(p.next)})
	p.live[ptr] = int32(p.next)
	p.next++
	p.stats.allocate(roundUp(size, p.align))
	p.follow()
	return ptr, nil
}

// vacant reports whether the place of a placement is free.
func (p *Planned) vacant(place *Placement) bool {
	set := &p.taken[place.Arena]
	at := set.seek(place.Offset, 0)
	if set.valid(at) && set.at(at).size < place.Offset+place.Size {
		return false
	}
	if at = set.before(at); !set.valid(at) {
		return true
	}
	below := &p.plan[set.at(at).id]
	return below.Offset+below.Size <= place.Offset
}

// Free implements Allocator.
func (p *Planned) Free(ptr cuda.Ptr) error {
	i, ok := p.live[ptr]
	if !ok {
		return p.torch.Free(ptr)
	}
	place := &p.plan[i]
	delete(p.live, ptr)
	p.taken[place.Arena].remove(place.Offset, ptr)
	p.stats.Allocated -= roundUp(place.Size, p.align)
	return nil
}

// RecordStream implements Allocator. The plan already keeps a tensor's place until the last stream is done with it.
func (p *Planned) RecordStream(ptr cuda.Ptr, stream cuda.Stream) error {
	if _, ok := p.live[ptr]; ok {
		return nil
	}
	return p.torch.RecordStream(ptr, stream)
}

// Empty implements Allocator. The arenas stay.
func (p *Planned) Empty() error { return p.torch.Empty() }

// Holdings implements Allocator: the arenas and what PyTorch's allocator holds beside them.
func (p *Planned) Holdings() []Holding {
	var all []Holding
	for i, base := range p.bases {
		all = append(all, Holding{
			Address: base, Size: cuda.AllocSize(p.arenas[i]), Planned: true,
			Round: func(size int64) int64 { return roundUp(size, p.align) },
		})
	}
	for ptr, i := range p.live {
		place := &p.plan[i]
		h := &all[place.Arena]
		h.Uses = append(h.Uses, Use{ptr, min(h.Round(place.Size), h.Size-place.Offset)})
	}
	return append(all, p.torch.Holdings()...)
}
