package blocks

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// region is a reserved range of addresses of one heap. No piece is mapped in it twice, so that no block shows the same bytes twice.
type region struct {
	ptr       cuda.Ptr
	size      int64   // reserved
	end       int64   // bytes from the start up to which mappings were made
	heap      int32   // none if the region is not in use
	mappingAt []int32 // by granule up to the end; none where nothing is mapped
	granted   int     // number of mappings
	planned   bool    // its memory belongs to a plan: nothing else is mapped at its end
	main      bool    // it shows the heap's own pieces in the order in which they were made, and nothing else
}

// regionSize is the least number of bytes of addresses to reserve at a time, until there are manyRegions. Addresses cost nothing until they
// are mapped, but a process has only 128 TiB of them.
const (
	regionSize  = 64 << 30
	manyRegions = 256
)

// begin reserves a region for a heap, of n bytes or more.
func (s *Stitch) begin(h *heap, n int64) (int32, error) {
	ptr, size, err := s.reserve(n)
	if err != nil && !s.capturing() { // old mappings may hold all addresses
		undoing := s.undoUnused()
		if ptr, size, err = s.reserve(n); err != nil {
			err = errors.Join(err, undoing)
		}
	}
	if err != nil {
		return none, err
	}
	id := int32(len(s.regions))
	if k := len(s.spare.regions) - 1; k >= 0 {
		id, s.spare.regions = s.spare.regions[k], s.spare.regions[:k]
	} else {
		s.regions = append(s.regions, region{})
	}
	s.regions[id] = region{ptr: ptr, size: size, heap: h.number, mappingAt: s.regions[id].mappingAt[:0]}
	h.regions = append(h.regions, id)
	return id, nil
}

// mainRegion returns the main region of a heap, one that has room for n more bytes.
func (s *Stitch) mainRegion(h *heap, n int64) (int32, error) {
	if h.main != none && s.regions[h.main].room() >= n {
		return h.main, nil
	}
	id, err := s.begin(h, n)
	if err == nil {
		s.regions[id].main = true
		h.main = id
	}
	return id, err
}

// reserve reserves addresses for n bytes, and many more if it can.
func (s *Stitch) reserve(n int64) (cuda.Ptr, int64, error) {
	n = roundUp(n, cuda.Granularity)
	size := max(2*n, regionSize)
	if len(s.regions)-len(s.spare.regions) >= manyRegions {
		size = 2*n + 4*s.conf.PieceMax
	}
	ptr, err := s.dev.AddressReserve(size)
	if err != nil {
		size = n
		ptr, err = s.dev.AddressReserve(size)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reserve %d bytes of addresses: %w", size, err)
	}
	return ptr, size, nil
}

// room returns how many bytes can be mapped behind the end of a region.
func (r *region) room() int64 { return r.size - r.end }

// at returns the mapping at an address, none if there is none.
func (r *region) at(p cuda.Ptr) int32 {
	if granule := uint64(p-r.ptr) / cuda.Granularity; granule < uint64(len(r.mappingAt)) {
		return r.mappingAt[granule]
	}
	return none
}

// shows reports whether a piece is mapped in a region.
func (s *Stitch) shows(region int32, p *piece) bool {
	for _, id := range p.mappings {
		if s.mappings[id].region == region {
			return true
		}
	}
	return false
}

// shrink moves the end of a region back over what is no longer mapped, and frees the region if nothing is mapped in it.
func (s *Stitch) shrink(id int32) error {
	r := &s.regions[id]
	for k := len(r.mappingAt); k > 0 && r.mappingAt[k-1] == none; k-- {
		r.mappingAt = r.mappingAt[:k-1]
	}
	r.end = int64(len(r.mappingAt)) * cuda.Granularity
	if r.granted > 0 || r.planned {
		return nil
	}
	if err := s.dev.AddressFree(r.ptr, r.size); err != nil {
		return fmt.Errorf("free addresses: %w", err)
	}
	h := s.heaps[r.heap]
	h.regions = slices.DeleteFunc(h.regions, func(x int32) bool { return x == id })
	if h.main == id {
		h.main = none
	}
	r.heap = none
	s.spare.regions = append(s.spare.regions, id)
	return nil
}
