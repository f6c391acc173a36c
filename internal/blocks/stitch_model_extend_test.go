package blocks

import (
	"cmp"
	"slices"

	"gm/internal/cuda"
)

// plainExtension is a way to make a free range.
type plainExtension struct {
	grows   bool
	region  *plainRegion // nil for a new one
	before  int          // free units with which the range begins
	pieces  []*plainPiece
	last    *plainPiece // mapped behind new pieces
	missing int         // units of new pieces
}

func (x *plainExtension) mappings() int {
	if x.last != nil {
		return len(x.pieces) + 1
	}
	return len(x.pieces)
}

// extend is Stitch.extend: new pieces where they are allowed, else what needs the least new memory and then the fewest mappings.
func (m *plainStitch) extend(h *plainHeap, n int) (plainStretch, bool) {
	x := m.growth(h, n)
	most := max(m.peak, m.allocated+int64(n)*plainUnit)
	if m.reserved+int64(x.missing)*plainUnit <= most+int64(m.conf.Slack*float64(most)) {
		if at, ok := m.carryOut(h, &x, n); ok {
			return at, true
		}
	}
	x = m.stitching(h, n)
	if x.missing > 0 {
		m.fetch(h, x.missing)
		x = m.stitching(h, n)
	}
	if growth := m.growth(h, n); growth.missing < x.missing || growth.missing == x.missing && x.mappings() >= growth.mappings() {
		x = growth
	}
	at, ok := m.carryOut(h, &x, n)
	if ok && !x.grows {
		m.stitches++
	}
	return at, ok
}

func toGranule(units int) int {
	return max(int(roundUp(int64(units)*plainUnit, cuda.Granularity)/plainUnit), 0)
}

// growth is the extension of the main region, or of a new one if that has no room.
func (m *plainStitch) growth(h *plainHeap, n int) plainExtension {
	x := plainExtension{grows: true, region: h.main, missing: toGranule(n)}
	if h.main == nil {
		return x
	}
	if before := m.freeAtEnd(h, h.main); h.main.size-h.main.end() >= n-before {
		x.before, x.missing = before, toGranule(n-before)
	}
	return x
}

// freeAtEnd returns the units of a heap that are free before the end of a region.
func (m *plainStitch) freeAtEnd(h *plainHeap, r *plainRegion) (n int) {
	for u := r.end() - 1; u >= 0; u-- {
		at := plainStretch{r, u, 1}
		if away, ok := m.survey(h, at); !ok || len(away) > 0 {
			break
		}
		n++
	}
	return n
}

// stitching compares all stitches: those in a new region, which may begin with the free end of a piece, and those at the end of another.
func (m *plainStitch) stitching(h *plainHeap, n int) plainExtension {
	all := []plainExtension{m.gather(h, plainExtension{}, n)}
	var tails []plainExtension
	for _, r := range h.regions {
		if room := r.size - r.end(); !r.main && room >= n+int(2*m.conf.PieceMax/plainUnit) {
			tails = append(tails, plainExtension{region: r, before: m.freeAtEnd(h, r)})
		}
	}
	slices.SortStableFunc(tails, func(a, b plainExtension) int { return cmp.Compare(b.before, a.before) })
	for _, x := range tails[:min(len(tails), triesOfTails)] {
		all = append(all, m.gather(h, x, n))
	}
	return slices.MinFunc(all, func(a, b plainExtension) int {
		return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.mappings(), b.mappings()))
	})
}

// gather adds pieces to x: one with a free end, unless a region is extended, idle ones and one with a free start.
func (m *plainStitch) gather(h *plainHeap, x plainExtension, n int) plainExtension {
	first, last, start := m.ends(h, &x)
	if first != nil {
		x.pieces = append(x.pieces, first)
	}
	if n -= x.before; n > 0 && last != nil {
		x.last = last
		n -= start
	}
	idle := slices.DeleteFunc(m.idle(h), func(p *plainPiece) bool { return x.region != nil && p.in(x.region) })
	for n > 0 && len(idle) > 0 {
		at := len(idle) - 1
		if len(idle[at].used) > n {
			at = slices.IndexFunc(idle, func(p *plainPiece) bool { return len(p.used) >= n })
		}
		x.pieces = append(x.pieces, idle[at])
		n -= len(idle[at].used)
		idle = idle[:at]
	}
	x.missing = toGranule(n)
	return x
}

// ends returns the pieces in use of which the free end and the free start are used, of those with an edge that is worth it.
func (m *plainStitch) ends(h *plainHeap, x *plainExtension) (first, last *plainPiece, most int) {
	for _, p := range m.pieces {
		if p == nil || p.heap != h || p.idle() || x.region != nil && p.in(x.region) {
			continue
		}
		start, end := p.edges()
		switch {
		case max(start, end)*plainUnit < minEdge:
		case x.region == nil && end > x.before && end >= start:
			x.before, first = end, p
		case start > most:
			most, last = start, p
		}
	}
	return first, last, most
}

// fetch moves idle pieces of other heaps, first those known to be out of use, if there are enough of them and of free memory.
func (m *plainStitch) fetch(to *plainHeap, n int) {
	available := int(m.capacity-m.reserved) / plainUnit
	for _, from := range m.heaps {
		if from == to {
			continue
		}
		m.settle(from)
		from.passed = from.epoch
		for _, p := range m.idle(from) {
			available += len(p.used)
		}
	}
	if available < n {
		return
	}
	for _, over := range [...]bool{true, false} {
		for _, from := range m.heaps {
			for _, p := range slices.Backward(m.idle(from)) {
				if from != to && n > 0 && (!over || p.epoch < from.passed) {
					m.pass(p, to)
					m.fetched++
					n -= len(p.used)
				}
			}
		}
	}
}

// carryOut creates and maps pieces. It does nothing and returns false if the device has no room.
func (m *plainStitch) carryOut(h *plainHeap, x *plainExtension, n int) (plainStretch, bool) {
	if int64(x.missing)*plainUnit > m.capacity-m.reserved {
		return plainStretch{}, false
	}
	var fresh []*plainPiece
	if x.missing > 0 {
		if h.main == nil || h.main.size-h.main.end() < x.missing {
			h.main = m.begin(h, x.missing)
			h.main.main = true
		}
		for left := x.missing; left > 0; {
			p := m.create(h, min(left, m.pieceSize(n)))
			fresh = append(fresh, p)
			left -= len(p.used)
		}
		m.mapAll(h.main, fresh)
	}
	if x.grows {
		return plainStretch{h.main, h.main.end() - x.missing - x.before, n}, true
	}
	all := append(x.pieces, fresh...)
	if x.last != nil {
		all = append(all, x.last)
	}
	r, end := x.region, 0
	if r == nil {
		size := 0
		for _, p := range all {
			size += len(p.used)
		}
		r = m.begin(h, size)
		if x.before > 0 {
			end = len(all[0].used)
		}
	} else {
		end = r.end()
	}
	m.mapAll(r, all)
	return plainStretch{r, end - x.before, n}, true
}

// begin reserves addresses for n units, and many more.
func (m *plainStitch) begin(h *plainHeap, n int) *plainRegion {
	size := max(2*int64(n)*plainUnit, regionSize)
	ptr, err := m.dev.AddressReserve(size)
	if err != nil {
		panic(err)
	}
	r := &plainRegion{ptr: ptr, size: int(size / plainUnit)}
	h.regions = append(h.regions, r)
	return r
}

// pieceSize is the size of new pieces for a request of n units.
func (m *plainStitch) pieceSize(n int) int {
	size := m.conf.PieceMin
	for size < m.conf.PieceMax && (size*m.conf.Parts < int64(n)*plainUnit || 2*size*m.conf.Pieces <= m.reserved) {
		size *= 2
	}
	return int(min(size, m.conf.PieceMax) / plainUnit)
}

func (m *plainStitch) create(h *plainHeap, n int) *plainPiece {
	p := &plainPiece{number: len(m.pieces), heap: h, used: make([]bool, n)}
	if k := len(m.spare) - 1; k >= 0 {
		p.number, m.spare = m.spare[k], m.spare[:k]
		m.pieces[p.number] = p
	} else {
		m.pieces = append(m.pieces, p)
	}
	m.reserved += int64(n) * plainUnit
	return p
}

// mapAll maps pieces at the end of a region. Those that are offered nowhere are offered there.
func (m *plainStitch) mapAll(r *plainRegion, pieces []*plainPiece) {
	for _, p := range pieces {
		x := &plainMapping{r, r.end(), p}
		r.mappings, p.mappings = append(r.mappings, x), append(p.mappings, x)
		if p.home == nil {
			p.home = x
		}
		m.mappings++
	}
}
