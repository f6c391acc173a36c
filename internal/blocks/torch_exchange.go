package blocks

import (
	"cmp"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// Exchanger is an allocator that can bring a private pool back to an earlier state, as PyTorch's graph trees ask for.
type Exchanger interface {
	Allocator
	// Exchange frees live blocks of a private pool and hands out others at given addresses, in memory that the pool has. It sorts the
	// places by address and fills in how much each took. It waits for the streams that use the freed blocks and those freed before. A
	// block that is handed out where one of the same stream was freed is used by the same streams. After an error the live blocks are
	// what they were.
	Exchange(pool Pool, freed []cuda.Ptr, taken []Place) error
}

var _ = [...]Exchanger{(*Torch)(nil), (*Stitch)(nil), (*Cyclic)(nil), (*GMLake)(nil)}

// Place is a block to be handed out at a given address.
type Place struct {
	Address cuda.Ptr
	Size    int64 // bytes as requested
	Stream  cuda.Stream
	Taken   int64 // bytes of the block, rounding included
}

// opening is a range of a private pool that is free, or will be.
type opening struct {
	Segment
	half   int32 // index in the allocator's pools
	places []Place
}

// Exchange implements [Exchanger].
func (t *Torch) Exchange(pool Pool, freed []cuda.Ptr, taken []Place) error {
	half, ok := t.pairs[pool]
	if !ok {
		return fmt.Errorf("private pool %d has no memory", pool)
	}
	ids, err := t.liveIn(half, freed)
	if err != nil {
		return err
	}
	if err := t.awaitUsers(ids); err != nil {
		return err
	}
	openings := t.openings(half, ids)
	if err := t.assign(openings, taken); err != nil {
		return err
	}
	users := map[cuda.Ptr][]cuda.Stream{}
	for _, id := range ids {
		b := t.store.at(id)
		if streams := t.lender.borrowers[id]; streams != nil {
			users[b.ptr] = streams
			delete(t.lender.borrowers, id)
		}
		t.index.Take(b.ptr)
		t.stats.Allocated -= b.size
		t.freeBlock(id)
	}
	if err := t.fill(openings); err != nil {
		return err
	}
	for p, streams := range users {
		if id, ok := t.index.Get(p); ok {
			t.lender.borrowers[id] = streams
		}
	}
	return nil
}

// liveIn returns the live blocks of a private pool at some addresses.
func (t *Torch) liveIn(half int32, ptrs []cuda.Ptr) ([]int32, error) {
	ids := make([]int32, len(ptrs))
	for i, p := range ptrs {
		id, ok := t.index.Get(p)
		if !ok || t.store.at(id).pool&^1 != half {
			return nil, fmt.Errorf("%#x: %w in this pool", p, errUnknownAddress)
		}
		ids[i] = id
	}
	return ids, nil
}

// awaitUsers waits for the streams that use blocks which were freed, and for those that use live blocks.
func (t *Torch) awaitUsers(live []int32) error {
	if err := t.lender.synchronize(); err != nil {
		return err
	}
	for _, id := range live {
		if err := t.lender.awaitBorrowers(id); err != nil {
			return err
		}
	}
	return nil
}

// openings returns the ranges of a private pool that will be free without some live blocks, by address.
func (t *Torch) openings(half int32, leaving []int32) []opening {
	leaves := make(map[int32]bool, len(leaving))
	for _, id := range leaving {
		leaves[id] = true
	}
	var all []opening
	for _, id := range t.store.heads() {
		if t.store.at(id).pool&^1 != half {
			continue
		}
		open := false
		for ; id != none; id = t.store.at(id).next {
			b := t.store.at(id)
			free := b.mapped && (!b.used || leaves[id])
			switch {
			case free && open:
				all[len(all)-1].Size += b.size
			case free:
				s := Segment{Addr: uint64(b.ptr), Size: b.size, Stream: b.stream, Expandable: b.segment != none}
				all = append(all, opening{Segment: s, half: b.pool})
			}
			open = free
		}
	}
	slices.SortFunc(all, func(a, b opening) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// assign sorts places by address and gives each to the range that it lies in.
func (t *Torch) assign(openings []opening, places []Place) error {
	slices.SortFunc(places, func(a, b Place) int { return cmp.Compare(a.Address, b.Address) })
	free := uint64(0) // everything below is taken
	for i, at := 0, 0; i < len(places); i++ {
		p := &places[i]
		if err := checkSize(p.Size); err != nil || p.Size == 0 {
			return fmt.Errorf("block of %d bytes at %#x: not a size", p.Size, p.Address)
		}
		for at < len(openings) && openings[at].end() <= uint64(p.Address) {
			at++
		}
		size := t.conf.RoundSize(p.Size)
		if at == len(openings) || !t.fits(&openings[at], p, size) || uint64(p.Address) < free {
			return fmt.Errorf("block of %d bytes at %#x: not in free memory of its pool and stream", p.Size, p.Address)
		}
		free = uint64(p.Address) + uint64(size)
		o := &openings[at]
		o.places = places[i-len(o.places) : i+1]
		o.Live = append(o.Live, Held{Addr: uint64(p.Address), Size: p.Size})
	}
	return nil
}

func (o *opening) end() uint64 { return o.Addr + uint64(o.Size) }

// fits reports whether a place of size bytes, rounding included, may be in a range.
func (t *Torch) fits(o *opening, p *Place, size int64) bool {
	at := uint64(p.Address)
	return at >= o.Addr && at+uint64(size) <= o.end() && (at-o.Addr)%minBlockSize == 0 && p.Stream == o.Stream &&
		t.pools[o.half].small == (size <= smallSize)
}

// fill hands out the places of ranges that are free now. Each is one block.
func (t *Torch) fill(openings []opening) error {
	for i := range openings {
		o := &openings[i]
		if len(o.places) == 0 {
			continue
		}
		l := t.pools[o.half].lane(o.Stream)
		id := l.free.take(l.free.seek(o.Size, cuda.Ptr(o.Addr))).id
		if _, err := t.carve(id, &o.Segment, l); err != nil {
			return err
		}
		for j := range o.places {
			p := &o.places[j]
			if id, ok := t.index.Get(p.Address); ok {
				p.Taken = t.store.at(id).size
			}
		}
	}
	return nil
}

// Exchange exchanges blocks of a private pool of PyTorch's allocator, to which all of these are left.
func (b *besideTorch) Exchange(pool Pool, freed []cuda.Ptr, taken []Place) error {
	err := b.torch.Exchange(pool, freed, taken)
	b.follow()
	return err
}
