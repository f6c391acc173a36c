package blocks

import (
	"fmt"

	"gm/internal/cuda"
)

// piece is the physical memory of one cuMemCreate. It is mapped as a whole at one or more ranges of addresses, which all show the same
// bytes. Its free bytes are offered at one of them, its home: the one in the main region, unless a block in it was placed at another. The
// others serve requests that were there before.
type piece struct {
	handle   cuda.Handle
	size     int64
	used     int64 // bytes in blocks, warm ones included
	heap     int32
	home     int32   // the mapping at which the heap's free ranges have what is free of it, none if it is not mapped on the heap
	mappings []int32 // its mappings
	epoch    int64   // of its heap, when its memory was last freed
}

// mapping is a mapping of a piece.
type mapping struct {
	ptr    cuda.Ptr
	piece  int32
	region int32
	blocks int32 // at these addresses, handed out or warm
	epoch  int64 // of the region's heap, when such a block was last freed, -1 if none was
	used   int64 // on the clock of extensions, when such a block was last handed out
	dead   bool  // it could not be undone after a failure, and has no access
}

// walk is a pass over the mappings of a stretch, from the first address on.
type walk struct {
	s    *Stitch
	r    *region
	at   cuda.Ptr
	left int64

	mapping *mapping
	id      int32 // of the mapping
	piece   *piece
	offset  int64 // in the piece, of the part of it that the stretch has
	n       int64 // bytes of that part
}

func (s *Stitch) walk(at stretch) walk {
	return walk{s: s, r: &s.regions[at.region], at: at.ptr, left: at.size}
}

// next goes on to the next mapping and reports whether there is one.
func (w *walk) next() bool {
	if w.left == 0 {
		return false
	}
	w.id = w.r.mappingAt[(w.at-w.r.ptr)/cuda.Granularity]
	w.mapping = &w.s.mappings[w.id]
	w.piece = &w.s.pieces[w.mapping.piece]
	w.offset = int64(w.at - w.mapping.ptr)
	w.n = min(w.left, w.piece.size-w.offset)
	w.at += cuda.Ptr(w.n)
	w.left -= w.n
	return true
}

// breaks returns the bytes of the wholly free pieces in which free memory lies: if it is taken they can no longer be mapped elsewhere. It
// does not count further once they are more than most.
func (s *Stitch) breaks(at stretch, most int64) (n int64) {
	for w := s.walk(at); n <= most && w.next(); {
		if w.piece.used == 0 {
			n += w.piece.size
		}
	}
	return n
}

// take turns free memory into a block. The memory may be offered at other addresses than these: pieces that are wholly free then move their
// home here.
func (s *Stitch) take(h *heap, at stretch) {
	whole := h.free.cut(at.ptr, at.size)
	for w := s.walk(at); w.next(); {
		w.mapping.blocks++
		w.mapping.used = s.clock
		p := w.piece
		if !whole {
			if p.used == 0 && p.home != w.id {
				s.move(h, p, w.id)
			}
			h.free.mustCut(s.mappings[p.home].ptr+cuda.Ptr(w.offset), w.n)
		}
		if p.used == 0 {
			h.idle.remove(p.size, w.mapping.piece)
		}
		p.used += w.n
	}
}

// putBack undoes take, for a block that was freed in an epoch of the heap.
func (s *Stitch) putBack(h *heap, at stretch, epoch int64) {
	whole := true
	for w := s.walk(at); w.next(); {
		m, p := w.mapping, w.piece
		m.blocks--
		m.epoch = max(m.epoch, epoch)
		p.epoch = max(p.epoch, epoch)
		if p.used -= w.n; p.used == 0 {
			h.idle.add(p.size, m.piece)
		}
		whole = whole && p.home == w.id
	}
	if whole {
		h.free.add(at)
		if s.regions[at.region].main {
			return
		}
	}
	for w := s.walk(at); w.next(); {
		if !whole {
			home := &s.mappings[w.piece.home]
			h.free.add(stretch{home.ptr + cuda.Ptr(w.offset), w.n, home.region})
		}
		if w.piece.used == 0 {
			s.sendHome(h, w.piece)
		}
	}
}

// sendHome offers a piece that is wholly free in the main region again, beside its neighbours, if it is mapped there.
func (s *Stitch) sendHome(h *heap, p *piece) {
	first := p.mappings[0]
	m := &s.mappings[first]
	if r := &s.regions[m.region]; first != p.home && !m.dead && r.main && r.heap == h.number {
		s.move(h, p, first)
	}
}

// move makes a mapping the home of a piece that is wholly free. With none, the piece is offered nowhere.
func (s *Stitch) move(h *heap, p *piece, to int32) {
	if p.home != none {
		h.free.mustCut(s.mappings[p.home].ptr, p.size)
	}
	if p.home = to; to != none {
		h.free.add(stretch{s.mappings[to].ptr, p.size, s.mappings[to].region})
	}
}

// mappingOn returns a mapping of a piece on a heap, other than the mapping not; none if there is none.
func (s *Stitch) mappingOn(h *heap, p *piece, not int32) int32 {
	for _, id := range p.mappings {
		if id != not && !s.mappings[id].dead && s.regions[s.mappings[id].region].heap == h.number {
			return id
		}
	}
	return none
}

// isFree reports whether n bytes of a piece of the heap are free.
func (s *Stitch) isFree(h *heap, p *piece, offset, n int64) bool {
	if p.used == 0 {
		return true
	}
	return h.free.holds(s.mappings[p.home].ptr+cuda.Ptr(offset), n)
}

// create creates a piece of size bytes that belongs to a heap and is mapped nowhere.
func (s *Stitch) create(h *heap, size int64) (int32, error) {
	handle, err := s.dev.Create(size)
	if err != nil {
		return none, fmt.Errorf("create a piece of %d bytes: %w", size, err)
	}
	id := int32(len(s.pieces))
	if k := len(s.spare.pieces) - 1; k >= 0 {
		id, s.spare.pieces = s.spare.pieces[k], s.spare.pieces[:k]
	} else {
		s.pieces = append(s.pieces, piece{})
	}
	s.pieces[id] = piece{handle: handle, size: size, heap: h.number, home: none, mappings: s.pieces[id].mappings[:0]}
	h.idle.add(size, id)
	s.stats.reserve(size)
	s.follow()
	return id, nil
}

// release releases an idle piece to the device, unless it is still mapped.
func (s *Stitch) release(id int32) error {
	p := &s.pieces[id]
	if len(p.mappings) > 0 {
		return nil
	}
	if err := s.dev.Release(p.handle); err != nil {
		return fmt.Errorf("release a piece: %w", err)
	}
	s.heaps[p.heap].idle.remove(p.size, id)
	s.stats.Reserved -= p.size
	*p = piece{heap: none, home: none, mappings: p.mappings[:0]}
	s.spare.pieces = append(s.spare.pieces, id)
	return nil
}

// edges returns the free bytes at the start of a piece in use, and at its end.
func (s *Stitch) edges(h *heap, p *piece) (start, end int64) {
	base := s.mappings[p.home].ptr
	limit := base + cuda.Ptr(p.size)
	if around, _, ok := h.free.around(base); ok {
		start = int64(around.end() - base)
	}
	if around, _, ok := h.free.around(limit - 1); ok {
		end = int64(limit - around.ptr)
	}
	return start, end
}
