package sim

import (
	"fmt"

	"gm/internal/cuda"
)

// Extent is a contiguous part of physical memory: of a handle, or of an allocation by MemAlloc.
type Extent struct {
	Handle cuda.Handle
	Base   cuda.Ptr // of the MemAlloc, when Handle is 0
	Offset int64
	Size   int64
}

// Overlaps reports whether two extents share a byte.
func (e Extent) Overlaps(o Extent) bool {
	return e.Handle == o.Handle && e.Base == o.Base && e.Offset < o.Offset+o.Size && o.Offset < e.Offset+e.Size
}

// Extents returns the physical memory of the addresses [p, p+size), in their order.
func (d *Device) Extents(p cuda.Ptr, size int64) ([]Extent, error) {
	for base, n := range d.allocs {
		if base <= p && p+cuda.Ptr(size) <= base+cuda.Ptr(n) {
			return []Extent{{Base: base, Offset: int64(p - base), Size: size}}, nil
		}
	}
	var all []Extent
	for size > 0 {
		h, offset, ok := d.mappingAt(p)
		if !ok {
			return nil, fmt.Errorf("nothing is mapped at %#x", p)
		}
		n := min(size, d.physical[h].size-offset)
		all = append(all, Extent{Handle: h, Offset: offset, Size: n})
		p += cuda.Ptr(n)
		size -= n
	}
	return all, nil
}

// mappingAt returns the handle that is mapped at p, and the offset of p in it.
func (d *Device) mappingAt(p cuda.Ptr) (cuda.Handle, int64, bool) {
	start := p &^ (cuda.Granularity - 1)
	for back := cuda.Ptr(0); back <= start; back += cuda.Granularity {
		if h := d.mappings[start-back]; h != 0 {
			offset := int64(p - (start - back))
			return h, offset, offset < d.physical[h].size
		}
		if back > 1<<32 {
			break
		}
	}
	return 0, 0, false
}
