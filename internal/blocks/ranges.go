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

func (r *ranges) insert(s stretch) {
	r.bySize.insert(free{size: s.size, ptr: s.ptr, id: s.region})
	r.byAddr.insert(free{size: int64(s.ptr), ptr: cuda.Ptr(s.size), id: s.region})
}

// takeAt removes and returns the stretch at a spot of byAddr.
func (r *ranges) takeAt(at spot) stretch {
	s := stretchOf(r.byAddr.take(at))
	r.bySize.remove(s.size, s.ptr)
	return s
}

func stretchOf(row free) stretch {
	return stretch{ptr: cuda.Ptr(row.size), size: int64(row.ptr), region: row.id}
}

// add puts s into the set and joins it with its neighbours.
func (r *ranges) add(s stretch) {
	at := r.byAddr.seek(int64(s.ptr), 0)
	if r.byAddr.valid(at) {
		if next := stretchOf(r.byAddr.at(at)); next.ptr == s.end() && next.region == s.region {
			s.size += r.takeAt(at).size
			at = r.byAddr.seek(int64(s.ptr), 0)
		}
	}
	if at = r.byAddr.before(at); r.byAddr.valid(at) {
		if last := stretchOf(r.byAddr.at(at)); last.end() == s.ptr && last.region == s.region {
			r.takeAt(at)
			s.ptr, s.size = last.ptr, last.size+s.size
		}
	}
	r.insert(s)
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

// holds reports whether all of [p, p+n) is in the set, and in which region.
func (r *ranges) holds(p cuda.Ptr, n int64) (region int32, ok bool) {
	s, _, ok := r.around(p)
	return s.region, ok && p+cuda.Ptr(n) <= s.end()
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

// cut removes [p, p+n), which must be in the set.
func (r *ranges) cut(p cuda.Ptr, n int64) {
	s, at, ok := r.around(p)
	if !ok || p+cuda.Ptr(n) > s.end() {
		panic("BUG: addresses are not free")
	}
	r.takeAt(at)
	if front := int64(p - s.ptr); front > 0 {
		r.insert(stretch{s.ptr, front, s.region})
	}
	if rest := int64(s.end()-p) - n; rest > 0 {
		r.insert(stretch{p + cuda.Ptr(n), rest, s.region})
	}
}
