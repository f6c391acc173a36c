package blocks

import (
	"errors"

	"gm/internal/cuda"
)

// extension is a way to make a free range: pieces to map at the end of a region.
type extension struct {
	grows   bool    // there are only new pieces, and the region is the main one
	region  int32   // none for a new one
	before  int64   // free bytes with which the range begins: at the end of the region, or of the first piece
	pieces  []int32 // mapped in this order: one whose end is free, then idle ones; new pieces follow
	last    int32   // one whose start is free, or none
	missing int64   // bytes of new pieces, which the main region shows, too
}

func (x *extension) mappings() int {
	n := len(x.pieces)
	if x.last != none {
		n++
	}
	return n
}

// better reports whether x needs less new memory than y, or the same and fewer mappings.
func (x *extension) better(y *extension) bool {
	return x.missing < y.missing || x.missing == y.missing && x.mappings() < y.mappings()
}

// extend makes room for n bytes at the end of a region and returns the addresses. It creates new pieces if mayGrow allows that. Otherwise
// it stitches free pieces, fetched from other streams if the heap has too few, unless new pieces alone need no more new memory.
func (s *Stitch) extend(h *heap, n int64) (stretch, error) {
	errs := []error{s.trim()}
	s.clock++
	x := s.growth(h, n)
	if s.mayGrow(n, x.missing) {
		at, err := s.carryOut(h, &x, n)
		if err == nil {
			return at, nil
		}
		errs = append(errs, err)
	}
	x = s.stitching(h, n)
	if x.missing > 0 && len(s.heaps) > 1 && !s.capturing() {
		errs = append(errs, s.fetch(h, x.missing))
		x = s.stitching(h, n)
	}
	if growth := s.growth(h, n); !x.better(&growth) {
		x = growth
	}
	at, err := s.carryOut(h, &x, n)
	if err != nil {
		return stretch{}, errors.Join(append(errs, err)...)
	}
	if !x.grows {
		s.stitches++
	}
	return at, nil
}

// growth returns the extension of the main region of a heap by new pieces.
func (s *Stitch) growth(h *heap, n int64) extension {
	x := extension{grows: true, region: h.main, last: none, missing: roundUp(n, cuda.Granularity)}
	if h.main == none {
		return x
	}
	if before := s.freeAtEnd(h, h.main); s.regions[h.main].room() >= n-before {
		x.before = before
		x.missing = max(roundUp(n-before, cuda.Granularity), 0)
	}
	return x
}

// mayGrow reports whether more bytes may be taken from the device for a request of n bytes, rather than free pieces stitched together.
func (s *Stitch) mayGrow(n, more int64) bool {
	stats := s.Stats()
	most := max(stats.PeakAllocated, stats.Allocated+n)
	return stats.Reserved+more <= most+int64(s.conf.Slack*float64(most))
}

// tail is the free bytes before the end of a region.
type tail struct {
	region int32
	size   int64
}

func (t tail) extension() extension { return extension{region: t.region, before: t.size, last: none} }

// triesOfTails is how many regions are considered for an extension, of the lastRegions that were begun last.
const (
	triesOfTails = 8
	lastRegions  = 512
)

// tails appends the regions of a heap that could be extended for n bytes, those with the most free bytes at the end first.
func (s *Stitch) tails(all []tail, h *heap, n int64) []tail {
	for _, id := range h.regions[max(len(h.regions)-lastRegions, 0):] {
		r := &s.regions[id]
		if r.planned || r.main || r.room() < n+2*s.conf.PieceMax {
			continue
		}
		t := tail{id, s.freeAtEnd(h, id)}
		at := len(all)
		for at > 0 && all[at-1].size < t.size {
			at--
		}
		if len(all) < triesOfTails {
			all = append(all, t)
		} else if at == len(all) {
			continue
		}
		copy(all[at+1:], all[at:])
		all[at] = t
	}
	return all
}

// freeAtEnd returns the bytes of a heap that are free before the end of a region, wherever they are offered.
func (s *Stitch) freeAtEnd(h *heap, id int32) (n int64) {
	r := &s.regions[id]
	for g := len(r.mappingAt); g > 0 && r.mappingAt[g-1] != none; {
		m := &s.mappings[r.mappingAt[g-1]]
		p := &s.pieces[m.piece]
		if m.dead || p.heap != h.number || p.home == none || p.used == p.size {
			return n
		}
		if p.used > 0 {
			_, end := s.edges(h, p)
			return n + end
		}
		n += p.size
		g -= int(p.size / cuda.Granularity)
	}
	return n
}

// stitching returns the extension with pieces of the heap that needs the least new memory and, among those, the fewest mappings. It is
// valid until the next call.
func (s *Stitch) stitching(h *heap, n int64) extension {
	edges := s.edgesOf(h)
	var room [triesOfTails]tail
	best := s.gather(h, extension{region: none, pieces: s.gathered[0][:0], last: none}, n, edges)
	other := s.gathered[1]
	for _, t := range s.tails(room[:0], h, n) {
		x := t.extension()
		x.pieces = other[:0]
		x = s.gather(h, x, n, edges)
		other = x.pieces
		if x.better(&best) {
			best, other = x, best.pieces
		}
	}
	s.gathered = [2][]int32{best.pieces, other}
	return best
}

// edge is a piece in use that is free at its start or its end.
type edge struct {
	piece      int32
	start, end int64 // free bytes
}

// edgesOf returns the pieces in use of a heap that have free bytes at an end, of the lastEdged that have free bytes. The result is valid until
// the next call.
func (s *Stitch) edgesOf(h *heap) []edge {
	first := len(s.pieces)
	for left := lastEdged; first > 0 && left > 0; {
		first--
		if s.mayHaveEdge(h, &s.pieces[first]) {
			left--
		}
	}
	all := s.edged[:0]
	for id := first; id < len(s.pieces); id++ {
		p := &s.pieces[id]
		if !s.mayHaveEdge(h, p) {
			continue
		}
		start, end := s.edges(h, p)
		if max(start, end) >= minEdge {
			all = append(all, edge{int32(id), start, end})
		}
	}
	s.edged = all
	return all
}

// mayHaveEdge reports whether a piece is one in use of a heap that has enough free bytes.
func (s *Stitch) mayHaveEdge(h *heap, p *piece) bool {
	return p.heap == h.number && p.used != 0 && p.size-p.used >= minEdge
}

const (
	minEdge   = 1 << 20 // the least number of free bytes at an end of a piece that is worth a mapping
	lastEdged = 4096    // how many pieces with free bytes are looked at, so that a request takes no longer where there are more
)

// gather adds pieces to x that total n bytes: the free end of one piece, unless x extends a region; idle pieces from the largest down, the
// last being the smallest that is large enough; and the free start of one piece. What is still missing must be new.
func (s *Stitch) gather(h *heap, x extension, n int64, edges []edge) extension {
	n -= x.before
	start := s.addEdges(&x, edges)
	if x.region == none {
		n -= x.before
	}
	if n > 0 {
		n -= start
	} else {
		x.last = none
	}
	for id := h.idle.last(); id != none && n > 0; id = h.idle.before(s.pieces[id].size, id) {
		if s.unfit(&x, id) {
			continue
		}
		if s.pieces[id].size > n {
			id = s.smallest(h, &x, n)
		}
		x.pieces = append(x.pieces, id)
		n -= s.pieces[id].size
	}
	x.missing = max(roundUp(n, cuda.Granularity), 0)
	return x
}

// addEdges adds to x the pieces in use with the most free bytes at the end and at the start. It returns the free bytes at the start.
func (s *Stitch) addEdges(x *extension, edges []edge) (start int64) {
	first := none
	for _, e := range edges {
		switch {
		case x.region != none && s.shows(x.region, &s.pieces[e.piece]):
		case x.region == none && e.end > x.before && e.end >= e.start:
			x.before, first = e.end, e.piece
		case e.start > start:
			start, x.last = e.start, e.piece
		}
	}
	if first != none {
		x.pieces = append(x.pieces, first)
	}
	return start
}

// unfit reports whether an idle piece cannot be added to x.
func (s *Stitch) unfit(x *extension, id int32) bool {
	return x.region != none && s.shows(x.region, &s.pieces[id])
}

// smallest returns the smallest idle piece of n bytes or more that can be added to x. There is one.
func (s *Stitch) smallest(h *heap, x *extension, n int64) int32 {
	id := h.idle.from(n, 0)
	for s.unfit(x, id) {
		id = h.idle.from(s.pieces[id].size, id+1)
	}
	return id
}
