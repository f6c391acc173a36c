package blocks

import "gm/internal/cuda"

// stretch is a stretch of addresses within a region.
type stretch struct {
	ptr    cuda.Ptr
	size   int64
	region int32
}

func (s stretch) end() cuda.Ptr { return s.ptr + cuda.Ptr(s.size) }

// ranges is a set of stretches that do not touch unless their regions differ, found by size and by address.
type ranges struct {
	bySize freeSet // by (size, address)
	byAddr freeSet // by (address, size): a row's size is the address and its ptr the size
}

// rowBySize and rowByAddr return the rows of a stretch.
func (s stretch) rowBySize() free { return free{size: s.size, ptr: s.ptr, id: s.region} }
func (s stretch) rowByAddr() free {
	return free{size: int64(s.ptr), ptr: cuda.Ptr(s.size), id: s.region}
}

func stretchOf(row free) stretch {
	return stretch{ptr: cuda.Ptr(row.size), size: int64(row.ptr), region: row.id}
}

// add puts s into the set and joins it with its neighbours.
func (r *ranges) add(s stretch) {
	after := r.byAddr.seek(int64(s.ptr), 0)
	before := r.byAddr.before(after)
	var last, next stretch
	joinsLast, joinsNext := false, false
	if r.byAddr.valid(before) {
		last = stretchOf(r.byAddr.at(before))
		joinsLast = last.end() == s.ptr && last.region == s.region
	}
	if r.byAddr.valid(after) {
		next = stretchOf(r.byAddr.at(after))
		joinsNext = next.ptr == s.end() && next.region == s.region
	}
	switch {
	case joinsLast && joinsNext:
		r.byAddr.take(after)
		r.bySize.remove(next.size, next.ptr)
		r.replace(before, last, stretch{last.ptr, last.size + s.size + next.size, s.region})
	case joinsLast:
		r.replace(before, last, stretch{last.ptr, last.size + s.size, s.region})
	case joinsNext:
		r.replace(after, next, stretch{s.ptr, s.size + next.size, s.region})
	default:
		r.byAddr.insertAt(after, s.rowByAddr())
		r.bySize.insert(s.rowBySize())
	}
}

// replace puts a stretch in the place of one, at a spot of byAddr, that it overlaps.
func (r *ranges) replace(at spot, old, by stretch) {
	r.byAddr.set(at, by.rowByAddr())
	r.bySize.rekey(old.size, old.ptr, by.rowBySize())
}

// around returns the stretch that holds p, and where it is in byAddr.
func (r *ranges) around(p cuda.Ptr) (stretch, spot, bool) {
	at := r.byAddr.before(r.byAddr.seek(int64(p)+1, 0))
	if !r.byAddr.valid(at) {
		return stretch{}, at, false
	}
	s := stretchOf(r.byAddr.at(at))
	return s, at, p < s.end()
}

// holds reports whether all of [p, p+n) is in the set.
func (r *ranges) holds(p cuda.Ptr, n int64) bool {
	s, _, ok := r.around(p)
	return ok && p+cuda.Ptr(n) <= s.end()
}

// fit returns the first n bytes of the smallest stretch of at least n bytes.
func (r *ranges) fit(n int64) (stretch, bool) {
	at := r.bySize.seek(n, 0)
	if !r.bySize.valid(at) {
		return stretch{}, false
	}
	f := r.bySize.at(at)
	return stretch{f.ptr, n, f.id}, true
}

// cut removes [p, p+n) and reports whether it was in the set.
func (r *ranges) cut(p cuda.Ptr, n int64) bool {
	s, at, ok := r.around(p)
	if !ok || p+cuda.Ptr(n) > s.end() {
		return false
	}
	front := stretch{s.ptr, int64(p - s.ptr), s.region}
	rest := stretch{p + cuda.Ptr(n), int64(s.end()-p) - n, s.region}
	switch {
	case front.size > 0 && rest.size > 0:
		r.replace(at, s, front)
		r.byAddr.insertAt(r.byAddr.next(at), rest.rowByAddr())
		r.bySize.insert(rest.rowBySize())
	case front.size > 0:
		r.replace(at, s, front)
	case rest.size > 0:
		r.replace(at, s, rest)
	default:
		r.byAddr.take(at)
		r.bySize.remove(s.size, s.ptr)
	}
	return true
}

// mustCut removes [p, p+n), which must be in the set.
func (r *ranges) mustCut(p cuda.Ptr, n int64) {
	if !r.cut(p, n) {
		panic("BUG: addresses are not free")
	}
}
