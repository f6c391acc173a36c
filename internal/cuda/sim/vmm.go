package sim

import (
	"cmp"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// reservation is a reserved range of addresses.
type reservation struct {
	Range
	mapped []bool // by granule from the start
	live   int    // number of mapped granules
}

func (r *reservation) granule(p cuda.Ptr) int { return int((p - r.Addr) / cuda.Granularity) }

// reservationAt returns the index of the reservation that contains [p, p+size), or the index at which to insert it.
func (d *Device) reservationAt(p cuda.Ptr, size int64) (int, bool) {
	i, exact := slices.BinarySearchFunc(d.reserved, p, func(r *reservation, p cuda.Ptr) int { return cmp.Compare(r.Addr, p) })
	if !exact {
		i--
	}
	return i, i >= 0 && p+cuda.Ptr(size) <= d.reserved[i].Addr+cuda.Ptr(d.reserved[i].Size)
}

// AddressReserve implements cuda.Device.
func (d *Device) AddressReserve(size int64) (cuda.Ptr, error) {
	p := d.nextPtr
	if err := d.ReserveAt(p, size); err != nil {
		return 0, err
	}
	return d.address(size), nil
}

// ReserveAt reserves a range at an address that the caller knows to be free.
func (d *Device) ReserveAt(p cuda.Ptr, size int64) error {
	if size <= 0 || size%cuda.Granularity != 0 {
		return fmt.Errorf("cuMemAddressReserve of %d bytes, not a multiple of %d", size, cuda.Granularity)
	}
	d.charge(AddressReserve, size, 1)
	i, _ := d.reservationAt(p, size)
	d.reserved = slices.Insert(d.reserved, i+1, &reservation{Range: Range{p, size}, mapped: make([]bool, size/cuda.Granularity)})
	return nil
}

// AddressFree implements cuda.Device.
func (d *Device) AddressFree(p cuda.Ptr, size int64) error {
	i, ok := d.reservationAt(p, size)
	if !ok || d.reserved[i].Range != (Range{p, size}) {
		return fmt.Errorf("cuMemAddressFree of %d bytes at %#x, which is no reserved range", size, p)
	}
	if live := d.reserved[i].live; live > 0 {
		return fmt.Errorf("cuMemAddressFree of %d bytes at %#x, where %d are mapped", size, p, live*cuda.Granularity)
	}
	d.charge(AddressFree, size, 1)
	d.reserved = slices.Delete(d.reserved, i, i+1)
	return nil
}

// Create implements cuda.Device.
func (d *Device) Create(size int64) (cuda.Handle, error) {
	if size <= 0 || size%cuda.Granularity != 0 {
		return 0, fmt.Errorf("cuMemCreate of %d bytes, not a multiple of %d", size, cuda.Granularity)
	}
	err := d.take(size)
	d.charge(Create, size, 1)
	if err != nil {
		return 0, err
	}
	d.nextHandle++
	d.physical[d.nextHandle] = &memory{size: size}
	return d.nextHandle, nil
}

// Release implements cuda.Device.
func (d *Device) Release(h cuda.Handle) error {
	m := d.physical[h]
	if m == nil || m.released {
		return fmt.Errorf("cuMemRelease of handle %d, which is not held", h)
	}
	d.charge(Release, m.size, 1)
	m.released = true
	d.drop(h, m)
	return nil
}

// drop frees the memory of a handle that is released and not mapped.
func (d *Device) drop(h cuda.Handle, m *memory) {
	if m.released && m.mapped == 0 {
		d.clearing.Give(m.size, d.now())
		delete(d.physical, h)
	}
}

// Map implements cuda.Device.
func (d *Device) Map(p cuda.Ptr, h cuda.Handle) error {
	m := d.physical[h]
	if m == nil || m.released {
		return fmt.Errorf("cuMemMap of handle %d, which is not held", h)
	}
	i, ok := d.reservationAt(p, m.size)
	if !ok || p%cuda.Granularity != 0 {
		return fmt.Errorf("cuMemMap of %d bytes at %#x, not within a reserved range", m.size, p)
	}
	r := d.reserved[i]
	granules := r.mapped[r.granule(p):r.granule(p+cuda.Ptr(m.size))]
	if slices.Contains(granules, true) {
		return fmt.Errorf("cuMemMap of %d bytes at %#x, where something is mapped", m.size, p)
	}
	for g := range granules {
		granules[g] = true
	}
	r.live += len(granules)
	d.charge(Map, m.size, 1)
	d.mappings[p] = h
	m.mapped++
	return nil
}

// SetAccess implements cuda.Device.
func (d *Device) SetAccess(p cuda.Ptr, size int64) error {
	if size <= 0 {
		return fmt.Errorf("cuMemSetAccess to %d bytes", size)
	}
	return d.walk("cuMemSetAccess", p, size, func(_ cuda.Ptr, _ cuda.Handle, m *memory) { d.charge(SetAccess, m.size, 1) })
}

// Unmap implements cuda.Device.
func (d *Device) Unmap(p cuda.Ptr, size int64) error {
	i, ok := d.reservationAt(p, size)
	if !ok {
		return fmt.Errorf("cuMemUnmap of %d bytes at %#x, not within a reserved range", size, p)
	}
	r := d.reserved[i]
	return d.walk("cuMemUnmap", p, size, func(at cuda.Ptr, h cuda.Handle, m *memory) {
		d.charge(Unmap, m.size, 1)
		granules := r.mapped[r.granule(at):r.granule(at+cuda.Ptr(m.size))]
		clear(granules)
		r.live -= len(granules)
		delete(d.mappings, at)
		m.mapped--
		d.drop(h, m)
	})
}

// walk visits the mappings that make up [p, p+size).
func (d *Device) walk(call string, p cuda.Ptr, size int64, visit func(cuda.Ptr, cuda.Handle, *memory)) error {
	end := p + cuda.Ptr(size)
	for p < end {
		h := d.mappings[p]
		m := d.physical[h]
		if m == nil {
			return fmt.Errorf("%s at %#x, where no mapping begins", call, p)
		}
		if p+cuda.Ptr(m.size) > end {
			return fmt.Errorf("%s up to %#x, within a mapping", call, end)
		}
		visit(p, h, m)
		p += cuda.Ptr(m.size)
	}
	return nil
}
