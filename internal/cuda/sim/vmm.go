package sim

import (
	"fmt"

	"gm/internal/cuda"
)

// AddressReserve implements cuda.Device.
func (d *Device) AddressReserve(size int64) (cuda.Ptr, error) {
	if size <= 0 || size%cuda.Granularity != 0 {
		return 0, fmt.Errorf("cuMemAddressReserve of %d bytes, not a multiple of %d", size, cuda.Granularity)
	}
	d.charge(AddressReserve, size, 1)
	p := d.address(size)
	d.ranges[p] = size
	return p, nil
}

// ReserveAt reserves a range at an address that the caller knows to be free.
func (d *Device) ReserveAt(p cuda.Ptr, size int64) {
	d.charge(AddressReserve, size, 1)
	d.ranges[p] = size
}

// AddressFree implements cuda.Device.
func (d *Device) AddressFree(p cuda.Ptr, size int64) error {
	if reserved, ok := d.ranges[p]; !ok || reserved != size {
		return fmt.Errorf("cuMemAddressFree of %d bytes at %#x, where %d are reserved", size, p, reserved)
	}
	d.charge(AddressFree, size, 1)
	delete(d.ranges, p)
	return nil
}

// Create implements cuda.Device.
func (d *Device) Create(size int64) (cuda.Handle, error) {
	if size <= 0 || size%cuda.Granularity != 0 {
		return 0, fmt.Errorf("cuMemCreate of %d bytes, not a multiple of %d", size, cuda.Granularity)
	}
	d.charge(Create, size, 1)
	if err := d.take(size); err != nil {
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

// drop frees the memory of a handle that is neither held nor mapped.
func (d *Device) drop(h cuda.Handle, m *memory) {
	if m.released && m.mapped == 0 {
		d.used -= m.size
		delete(d.physical, h)
	}
}

// Map implements cuda.Device.
func (d *Device) Map(p cuda.Ptr, h cuda.Handle) error {
	m := d.physical[h]
	if m == nil || m.released {
		return fmt.Errorf("cuMemMap of handle %d, which is not held", h)
	}
	if d.mappings[p] != 0 {
		return fmt.Errorf("cuMemMap at %#x, where handle %d is mapped", p, d.mappings[p])
	}
	d.charge(Map, m.size, 1)
	d.mappings[p] = h
	m.mapped++
	return nil
}

// SetAccess implements cuda.Device.
func (d *Device) SetAccess(p cuda.Ptr, size int64) error {
	return d.walk("cuMemSetAccess", p, size, func(cuda.Ptr, cuda.Handle, *memory) { d.charge(SetAccess, 0, 1) })
}

// Unmap implements cuda.Device.
func (d *Device) Unmap(p cuda.Ptr, size int64) error {
	return d.walk("cuMemUnmap", p, size, func(at cuda.Ptr, h cuda.Handle, m *memory) {
		d.charge(Unmap, 0, 1)
		delete(d.mappings, at)
		m.mapped--
		d.drop(h, m)
	})
}

// walk visits the mappings that make up [p, p+size).
func (d *Device) walk(call string, p cuda.Ptr, size int64, visit func(cuda.Ptr, cuda.Handle, *memory)) error {
	for end := p + cuda.Ptr(size); p < end; {
		h := d.mappings[p]
		m := d.physical[h]
		if m == nil {
			return fmt.Errorf("%s at %#x, where nothing is mapped", call, p)
		}
		visit(p, h, m)
		p += cuda.Ptr(m.size)
	}
	return nil
}
