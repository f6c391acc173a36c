package blocks

import (
	"cmp"
	"slices"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// plainStitch is Stitch in its plainest form: pieces are arrays of units, and everything is found by looking at all of them. It knows no
// limit to how much is looked at, no failures and no undoing of mappings. Its own device only says at which addresses ranges are.
type plainStitch struct {
	dev                                   *sim.Device
	conf                                  StitchConf
	capacity, reserved, allocated, peak   int64
	heaps                                 []*plainHeap
	pieces                                []*plainPiece // by number, nil where one was released
	spare                                 []int         // numbers, the last of which is given next
	searches, stitches, retries           int64
	mappings, waits, fetched, reclaimings int
}

// plainUnit is the unit of all sizes: what is smaller is not modelled.
const plainUnit = 512 << 10

type plainHeap struct {
	stream        cuda.Stream
	regions       []*plainRegion
	main          *plainRegion
	places        []*plainPlace // in the order of first use
	epoch, passed int
	frees         int
	seen          map[*plainHeap]int
}

type plainRegion struct {
	ptr      cuda.Ptr
	size     int // units, as are all below
	main     bool
	mappings []*plainMapping // by address
}

type plainMapping struct {
	region *plainRegion
	at     int
	piece  *plainPiece
}

func (m *plainMapping) end() int { return m.at + len(m.piece.used) }

type plainPiece struct {
	number   int
	heap     *plainHeap
	used     []bool
	home     *plainMapping
	mappings []*plainMapping
	epoch    int
}

func (p *plainPiece) idle() bool { return !slices.Contains(p.used, true) }

// edges returns the free units at the start and at the end.
func (p *plainPiece) edges() (start, end int) {
	for start < len(p.used) && !p.used[start] {
		start++
	}
	for end < len(p.used) && !p.used[len(p.used)-1-end] {
		end++
	}
	return start, end
}

func (p *plainPiece) in(r *plainRegion) bool {
	return slices.ContainsFunc(p.mappings, func(m *plainMapping) bool { return m.region == r })
}

// plainStretch is a stretch of a region.
type plainStretch struct {
	region *plainRegion
	at, n  int
}

func (s plainStretch) ptr() cuda.Ptr { return s.region.ptr + cuda.Ptr(s.at*plainUnit) }

type plainPlace struct {
	plainStretch
	state placeState
	epoch int
}

// end returns where the next mapping of a region goes.
func (r *plainRegion) end() int {
	if len(r.mappings) == 0 {
		return 0
	}
	return r.mappings[len(r.mappings)-1].end()
}

// each calls f for the parts of a stretch by mapping, with the units of the piece that it has. It returns false where nothing is mapped.
func (s plainStretch) each(f func(m *plainMapping, units []bool)) bool {
	for at := s.at; at < s.at+s.n; {
		i := slices.IndexFunc(s.region.mappings, func(m *plainMapping) bool { return m.at <= at && at < m.end() })
		if i < 0 {
			return false
		}
		m := s.region.mappings[i]
		end := min(m.end(), s.at+s.n)
		f(m, m.piece.used[at-m.at:end-m.at])
		at = end
	}
	return true
}

func (m *plainStitch) heap(stream cuda.Stream) *plainHeap {
	for _, h := range m.heaps {
		if h.stream == stream {
			return h
		}
	}
	h := &plainHeap{stream: stream, seen: map[*plainHeap]int{}}
	m.heaps = append(m.heaps, h)
	return h
}

// malloc returns 0 if there is no room.
func (m *plainStitch) malloc(size int64, stream cuda.Stream) cuda.Ptr {
	h, n := m.heap(stream), int(size/plainUnit)
	i := slices.IndexFunc(h.places, func(p *plainPlace) bool { return p.n == n && p.state == placeWarm })
	if i < 0 {
		at, ok := m.find(h, n)
		if !ok {
			return 0
		}
		i = slices.IndexFunc(h.places, func(p *plainPlace) bool { return p.plainStretch == at })
		if i < 0 {
			i = len(h.places)
			h.places = append(h.places, &plainPlace{plainStretch: at})
		}
	}
	h.places[i].state = placeLive
	m.allocated += size
	m.peak = max(m.peak, m.allocated)
	return h.places[i].ptr()
}

func (m *plainStitch) free(ptr cuda.Ptr) {
	for _, h := range m.heaps {
		i := slices.IndexFunc(h.places, func(p *plainPlace) bool { return p.state == placeLive && p.ptr() == ptr })
		if i < 0 {
			continue
		}
		h.places[i].state, h.places[i].epoch = placeWarm, h.epoch
		m.allocated -= int64(h.places[i].n) * plainUnit
		if h.frees++; h.frees%freesOfEpoch == 0 && len(m.heaps) > 1 {
			h.passed = h.epoch
			h.mark()
		}
		return
	}
	panic("free of an unknown address")
}

func (h *plainHeap) mark() { h.epoch, h.frees = h.epoch+1, 0 }

// settle frees the memory of warm blocks. Pieces that are then idle are offered in the main region, if it is there that they were mapped first.
func (m *plainStitch) settle(h *plainHeap) {
	for _, p := range h.places {
		if p.state != placeWarm {
			continue
		}
		p.state = placeFree
		p.each(func(x *plainMapping, units []bool) {
			clear(units)
			x.piece.epoch = max(x.piece.epoch, p.epoch)
			if first := x.piece.mappings[0]; x.piece.idle() && first.region.main && slices.Contains(h.regions, first.region) {
				x.piece.home = first
			}
		})
	}
}

// fit returns the smallest stretch of free memory with room for n units, of equals that at the lowest address.
func (m *plainStitch) fit(h *plainHeap, n int) (at plainStretch, ok bool) {
	var all []plainStretch
	for _, r := range h.regions {
		last := plainStretch{region: r, at: -1}
		for _, x := range r.mappings {
			for i, used := range x.piece.used {
				if used || x.piece.home != x || x.piece.heap != h {
					continue
				}
				if last.at+last.n != x.at+i {
					all = append(all, last)
					last = plainStretch{region: r, at: x.at + i}
				}
				last.n++
			}
		}
		all = append(all, last)
	}
	all = slices.DeleteFunc(all, func(s plainStretch) bool { return s.n < n })
	if len(all) == 0 {
		return at, false
	}
	at = slices.MinFunc(all, func(a, b plainStretch) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.ptr(), b.ptr())) })
	at.n = n
	return at, true
}

// take marks memory as used. Pieces that were idle are offered from now on where they are used.
func (m *plainStitch) take(at plainStretch) plainStretch {
	at.each(func(x *plainMapping, units []bool) {
		if x.piece.idle() {
			x.piece.home = x
		}
		for i := range units {
			units[i] = true
		}
	})
	return at
}

// breaks returns the units of the idle pieces that a stretch touches.
func (m *plainStitch) breaks(at plainStretch) (n int) {
	at.each(func(x *plainMapping, _ []bool) {
		if x.piece.idle() {
			n += len(x.piece.used)
		}
	})
	return n
}

// survey reports whether the memory of a place is free, or would be with some idle pieces of other heaps.
func (m *plainStitch) survey(h *plainHeap, at plainStretch) (away []*plainPiece, ok bool) {
	free := true
	ok = at.each(func(x *plainMapping, units []bool) {
		switch {
		case x.piece.heap == h:
			free = free && !slices.Contains(units, true)
		case x.piece.idle():
			away = append(away, x.piece)
		default:
			free = false
		}
	})
	return away, ok && free
}

// find is Stitch.find, with makeRoom.
func (m *plainStitch) find(h *plainHeap, n int) (plainStretch, bool) {
	m.searches++
	m.settle(h)
	fit, fits := m.fit(h, n)
	for _, p := range h.places {
		if p.n != n || p.state != placeFree {
			continue
		}
		away, ok := m.survey(h, p.plainStretch)
		if !ok || len(away) > 0 || fits && p.ptr() != fit.ptr() && m.breaks(p.plainStretch) > m.breaks(fit)+n {
			continue
		}
		return m.take(p.plainStretch), true
	}
	if fits {
		return m.take(fit), true
	}
	if at, ok := m.reclaim(h, n); ok {
		return m.take(at), true
	}
	at, ok := m.extend(h, n)
	if !ok {
		for _, other := range m.heaps {
			m.settle(other)
		}
		m.retries++
		at, ok = m.extend(h, n)
	}
	if !ok {
		return at, false
	}
	return m.take(at), true
}

// reclaim finds a place that was used before and fetches its pieces from other heaps, first those that are idle without their warm blocks.
func (m *plainStitch) reclaim(h *plainHeap, n int) (at plainStretch, ok bool) {
	for range 2 {
		for _, p := range h.places {
			if away, ok := m.survey(h, p.plainStretch); ok && p.n == n && p.state == placeFree {
				for _, piece := range away {
					m.pass(piece, h)
				}
				m.reclaimings++
				return p.plainStretch, true
			}
		}
		for _, other := range m.heaps {
			if len(m.heaps) > 1 {
				m.settle(other)
			}
		}
	}
	return at, false
}

// pass moves an idle piece to another heap, whose stream waits unless the piece is known to be out of use.
func (m *plainStitch) pass(p *plainPiece, to *plainHeap) {
	from := p.heap
	if p.epoch >= max(to.seen[from], from.passed) {
		if p.epoch == from.epoch {
			from.mark()
		}
		m.waits++
		to.seen[from] = p.epoch + 1
	}
	p.heap, p.epoch, p.home = to, to.epoch, nil
	if i := slices.IndexFunc(p.mappings, func(x *plainMapping) bool { return slices.Contains(to.regions, x.region) }); i >= 0 {
		p.home = p.mappings[i]
	}
}

// idle returns the idle pieces of a heap, the smallest first, of equals that with the lowest number.
func (m *plainStitch) idle(h *plainHeap) []*plainPiece {
	all := slices.DeleteFunc(slices.Clone(m.pieces), func(p *plainPiece) bool { return p == nil || p.heap != h || !p.idle() })
	slices.SortFunc(all, func(a, b *plainPiece) int {
		return cmp.Or(cmp.Compare(len(a.used), len(b.used)), cmp.Compare(a.number, b.number))
	})
	return all
}

// empty releases the idle pieces.
func (m *plainStitch) empty() {
	for _, h := range m.heaps {
		m.settle(h)
		h.passed = h.epoch
	}
	for number, p := range m.pieces {
		if p == nil || !p.idle() {
			continue
		}
		for _, x := range p.mappings {
			m.unmap(x)
		}
		m.pieces[number] = nil
		m.spare = append(m.spare, number)
		m.reserved -= int64(len(p.used)) * plainUnit
	}
}

func (m *plainStitch) unmap(x *plainMapping) {
	r := x.region
	r.mappings = slices.DeleteFunc(r.mappings, func(y *plainMapping) bool { return y == x })
	if len(r.mappings) > 0 {
		return
	}
	if err := m.dev.AddressFree(r.ptr, int64(r.size)*plainUnit); err != nil {
		panic(err)
	}
	for _, h := range m.heaps {
		h.regions = slices.DeleteFunc(h.regions, func(y *plainRegion) bool { return y == r })
		if h.main == r {
			h.main = nil
		}
	}
}
