package blocks

import (
	"cmp"
	"slices"

	"gm/internal/cuda"
)

// Segments returns the memory ordered by address: each piece at its home, neighbours joined, and the segments of small requests and of
// private pools. Memory that is handed out at other addresses than its home is also shown as a block in use.
func (s *Stitch) Segments() []SegmentView { return s.segments(s.used()) }

// used returns the blocks that are handed out or pending.
func (s *Stitch) used() []BlockView {
	var all []BlockView
	for i := range s.places {
		switch p := &s.places[i]; p.state {
		case placeLive:
			all = append(all, BlockView{p.ptr, p.size, BlockUsed})
		case placePending:
			all = append(all, BlockView{p.ptr, p.size, BlockPending})
		}
	}
	return all
}

// segments returns the memory with blocks in use among what is free.
func (s *Stitch) segments(used []BlockView) []SegmentView {
	for _, h := range s.heaps {
		s.settle(h)
	}
	slices.SortFunc(used, func(a, b BlockView) int { return cmp.Compare(a.Address, b.Address) })
	all := s.torch.Segments()
	for _, h := range s.heaps {
		for _, id := range h.regions {
			all = append(all, s.homesIn(h, &s.regions[id], used)...)
		}
	}
	slices.SortFunc(all, func(a, b SegmentView) int { return cmp.Compare(a.Address, b.Address) })
	return all
}

// homesIn returns the stretches of a region in which pieces have their homes, and the free pieces that have none and were mapped there first.
func (s *Stitch) homesIn(h *heap, r *region, used []BlockView) []SegmentView {
	var all, homeless []SegmentView
	for g := 0; g < len(r.mappingAt); {
		id := r.mappingAt[g]
		if id == none {
			g++
			continue
		}
		m := &s.mappings[id]
		p := &s.pieces[m.piece]
		g += int(p.size / cuda.Granularity)
		if p.home == none && p.mappings[0] == id {
			v := SegmentView{Address: m.ptr, Size: p.size, Stream: s.heaps[p.heap].stream, Expandable: true}
			v.Blocks = []BlockView{{m.ptr, p.size, BlockFree}}
			homeless = append(homeless, v)
		}
		if p.home != id {
			continue
		}
		if k := len(all) - 1; k >= 0 && all[k].Address+cuda.Ptr(all[k].Size) == m.ptr {
			all[k].Size += p.size
			continue
		}
		all = append(all, SegmentView{Address: m.ptr, Size: p.size, Stream: h.stream, Expandable: true})
	}
	for i := range all {
		all[i].Blocks = s.blocksIn(h, &all[i], used)
	}
	return append(all, homeless...)
}

// blocksIn returns the blocks of a segment: those in use, what is free, and between them what is in use at other addresses.
func (s *Stitch) blocksIn(h *heap, v *SegmentView, used []BlockView) []BlockView {
	var blocks []BlockView
	end := v.Address + cuda.Ptr(v.Size)
	at := v.Address
	i, _ := slices.BinarySearchFunc(used, at, func(b BlockView, p cuda.Ptr) int { return cmp.Compare(b.Address, p) })
	for at < end {
		next := BlockView{end, 0, BlockUsed}
		if i < len(used) && used[i].Address < end {
			next = used[i]
		}
		if free, _, ok := h.free.around(at); ok {
			n := min(int64(free.end()-at), int64(end-at))
			blocks = append(blocks, BlockView{at, n, BlockFree})
			at += cuda.Ptr(n)
			continue
		}
		if next.Address == at {
			n := min(next.Size, int64(end-at))
			blocks = append(blocks, BlockView{at, n, next.State})
			at += cuda.Ptr(n)
			i++
			continue
		}
		stop := next.Address
		if spot := h.free.byAddr.seek(int64(at), 0); h.free.byAddr.valid(spot) {
			stop = min(stop, stretchOf(h.free.byAddr.at(spot)).ptr)
		}
		blocks = append(blocks, BlockView{at, int64(stop - at), BlockUsed})
		at = stop
	}
	return blocks
}

// Pending returns the bytes in blocks that were freed and that other streams still use, those of small requests first.
func (s *Stitch) Pending() (small, large int64) {
	small, large = s.torch.Pending()
	for id := range s.lender.events {
		large += s.places[id].size
	}
	return small, large
}

// Holdings implements Allocator: the pieces, and what PyTorch's allocator holds beside them. It joins what is warm with the free memory.
func (s *Stitch) Holdings() []Holding { return s.holdings(s.held()) }

// heldBlock is a block that is handed out, or pending.
type heldBlock struct {
	stretch
	pending bool
}

func (s *Stitch) held() []heldBlock {
	var all []heldBlock
	for i := range s.places {
		if p := &s.places[i]; p.state == placeLive || p.state == placePending {
			all = append(all, heldBlock{stretch{p.ptr, p.size, p.region}, p.state == placePending})
		}
	}
	return all
}

// holdings returns the pieces, with blocks in them.
func (s *Stitch) holdings(held []heldBlock) []Holding {
	for _, h := range s.heaps {
		s.settle(h)
	}
	var all []Holding
	number := make([]int, len(s.pieces)) // by piece, its holding
	for id := range s.pieces {
		if p := &s.pieces[id]; p.heap != none {
			number[id] = len(all)
			all = append(all, s.holding(p))
		}
	}
	for i := range held {
		b := &held[i]
		for w := s.walk(b.stretch); w.next(); {
			h := &all[number[w.mapping.piece]]
			if b.pending {
				h.Pending += w.n
			} else {
				h.Uses = append(h.Uses, Use{b.ptr, w.n})
			}
		}
	}
	return append(all, s.torch.Holdings()...)
}

// holding returns a piece, without the blocks in it.
func (s *Stitch) holding(p *piece) Holding {
	h := Holding{Size: p.size, Stream: s.heaps[p.heap].stream, Round: toMinBlock}
	for _, id := range p.mappings {
		m := &s.mappings[id]
		h.Planned = h.Planned || s.regions[m.region].planned
		if h.Address == 0 || id == p.home {
			h.Address = m.ptr
		}
	}
	return h
}
