package blocks

import "gm/internal/cuda"

// Holdings returns the pieces and what PyTorch's allocator holds beside them: the sizes add up to Stats().Reserved. It joins what is
// warm with the free memory.
func (s *Stitch) Holdings() []Holding {
	for _, h := range s.heaps {
		s.settle(h)
	}
	var all []Holding
	number := make([]int, len(s.pieces)) // by piece, its holding
	for id := range s.pieces {
		p := &s.pieces[id]
		if p.heap == none {
			continue
		}
		number[id] = len(all)
		h := Holding{Size: p.size, Stream: s.heaps[p.heap].stream, Round: toMinBlock}
		if p.home != none {
			h.Address = s.mappings[p.home].ptr
		} else if len(p.mappings) > 0 {
			h.Address = s.mappings[p.mappings[0]].ptr
		}
		all = append(all, h)
	}
	for i := range s.places {
		p := &s.places[i]
		if p.state != placeLive && p.state != placePending {
			continue
		}
		s.visit(stretch{p.ptr, p.size, p.region}, func(id int32, _, n int64) {
			h := &all[number[s.mappings[id].piece]]
			if p.state == placeLive {
				h.Uses = append(h.Uses, Use{p.ptr, n})
			} else {
				h.Pending += n
			}
		})
	}
	return append(all, s.torch.Holdings()...)
}

// Holdings returns the primitive blocks and what PyTorch's allocator holds beside them: the sizes add up to Stats().Reserved.
func (g *GMLake) Holdings() []Holding {
	pools := map[*lake]Pool{}
	for key, l := range g.lakes {
		pools[l] = key.pool
	}
	users := map[int32]cuda.Ptr{} // by primitive block, the address at which it is handed out
	g.index.Each(func(_ cuda.Ptr, id *int32) {
		token := *id
		if token%2 == 0 {
			users[token/2] = g.prims[token/2].ptr
			return
		}
		for _, part := range g.stitched[token/2].parts {
			users[part] = g.stitched[token/2].ptr
		}
	})
	var all []Holding
	for id := range g.prims {
		p := &g.prims[id]
		if len(p.chunks) == 0 {
			continue
		}
		h := Holding{Address: p.ptr, Size: p.size(), Stream: p.lake.stream, Pool: pools[p.lake], Round: toMinBlock}
		if at, ok := users[int32(id)]; ok {
			h.Uses = []Use{{at, h.Size}}
		} else if p.active {
			h.Pending = h.Size
		}
		all = append(all, h)
	}
	return append(all, g.torch.Holdings()...)
}

// Holdings returns the segments and what PyTorch's allocator holds beside them: the sizes add up to Stats().Reserved.
func (g *GMLakeCode) Holdings() []Holding {
	users := map[int32]cuda.Ptr{} // by primitive block, the address at which it is handed out
	g.index.Each(func(_ cuda.Ptr, id *int32) {
		token := *id
		if token%2 == 0 {
			users[token/2] = g.address(token)
			return
		}
		f := &g.stitched[token/2]
		for _, c := range f.chunks[:f.used] {
			users[g.chunks[c].owner] = f.ptr
		}
	})
	var all []Holding
	for _, head := range g.store.heads() {
		first := g.store.at(head)
		key := g.order[first.pool].key
		h := Holding{Address: first.ptr, Stream: key.stream, Pool: key.pool, Round: toMinBlock}
		for id := head; id != none; id = g.store.at(id).next {
			b := g.store.at(id)
			h.Size += b.size
			if at, ok := users[id]; ok {
				h.Uses = append(h.Uses, Use{at, b.size})
			} else if b.used {
				h.Pending += b.size
			}
		}
		all = append(all, h)
	}
	return append(all, g.torch.Holdings()...)
}
