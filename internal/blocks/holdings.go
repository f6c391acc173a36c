package blocks

import "gm/internal/cuda"

// Holding is memory that an allocator took from the device as one and could give back as one: a segment, a mapped stretch of an
// expandable segment, a piece, the arena of a plan.
type Holding struct {
	Address cuda.Ptr // where it begins, or one of its places
	Size    int64    // bytes
	Stream  cuda.Stream
	Pool    Pool
	Small   bool  // of PyTorch's pool for small requests
	Planned bool  // the arena of a plan
	Pending int64 // bytes in blocks that were freed and that other streams still use
	Growth  int64 // bytes that are free behind the last block of an expandable segment's mapped pages
	Uses    []Use

	// Round returns what a request of so many bytes takes at the least.
	Round func(size int64) int64
}

// Use is a block that is handed out, or as much of it as a Holding has.
type Use struct {
	Block cuda.Ptr // the address that Malloc returned
	Bytes int64
}

// Used returns the bytes in blocks that are handed out.
func (h *Holding) Used() (n int64) {
	for _, u := range h.Uses {
		n += u.Bytes
	}
	return n
}

// Free returns the bytes in no block.
func (h *Holding) Free() int64 { return h.Size - h.Pending - h.Used() }

// toMinBlock rounds as allocators do that hand out multiples of 512 bytes.
func toMinBlock(size int64) int64 { return roundUp(size, minBlockSize) }

// Holdings returns all that is reserved: the sizes add up to Stats().Reserved.
func (t *Torch) Holdings() []Holding {
	var all []Holding
	for _, s := range t.Segments() {
		h := Holding{Address: s.Address, Size: s.Size, Stream: s.Stream, Pool: s.Pool, Small: s.Small, Round: t.conf.RoundSize}
		for _, b := range s.Blocks {
			switch b.State {
			case BlockUsed:
				h.Uses = append(h.Uses, Use{b.Address, b.Size})
			case BlockPending:
				h.Pending += b.Size
			}
		}
		if last := s.Blocks[len(s.Blocks)-1]; s.Expandable && last.State == BlockFree {
			h.Growth = last.Size
		}
		all = append(all, h)
	}
	return all
}

// Holdings returns all that is counted, as one: the sizes add up to Stats().Reserved.
func (f *Floor) Holdings() []Holding {
	h := Holding{Size: f.stats.Reserved, Round: func(size int64) int64 { return roundUp(size, f.align) }}
	f.index.Each(func(p cuda.Ptr, t *int32) { h.Uses = append(h.Uses, Use{p, f.sizes[*t]}) })
	for t := range f.lender.events {
		h.Pending += f.sizes[t]
	}
	return []Holding{h}
}

// Holdings returns each block: the sizes add up to Stats().Reserved.
func (n *Native) Holdings() []Holding {
	var all []Holding
	add := func(id int32) *Holding {
		b := &n.live[id]
		all = append(all, Holding{Address: b.ptr, Size: cuda.AllocSize(b.size), Stream: b.stream, Round: toMinBlock})
		return &all[len(all)-1]
	}
	n.index.Each(func(_ cuda.Ptr, id *int32) {
		h := add(*id)
		h.Uses = []Use{{h.Address, h.Size}}
	})
	for id := range n.lender.events {
		h := add(id)
		h.Pending = h.Size
	}
	return all
}

// Holdings returns the arenas and what PyTorch's allocator holds beside them: the sizes add up to Stats().Reserved.
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
