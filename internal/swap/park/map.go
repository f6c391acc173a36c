package park

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// Map implements cuda.Device.
func (d *Device) Map(p cuda.Ptr, h cuda.Handle) error {
	d.begin()
	defer d.mu.Unlock()
	return d.mapAt(p, h)
}

func (d *Device) mapAt(p cuda.Ptr, h cuda.Handle) error {
	of, err := d.piece(h)
	if err != nil {
		return err
	}
	if err := d.Device.Map(p, of.real); err != nil {
		return err
	}
	m := &mapping{p: p, piece: of, mapped: true}
	if i := d.reservation(p); i >= 0 {
		m.reserved = d.reserved[i]
	}
	of.at = append(of.at, m)
	d.maps[p] = m
	return nil
}

// SetAccess implements cuda.Device.
func (d *Device) SetAccess(p cuda.Ptr, size int64) error {
	d.begin()
	defer d.mu.Unlock()
	return d.open(p, size)
}

func (d *Device) open(p cuda.Ptr, size int64) error {
	if err := d.Device.SetAccess(p, size); err != nil {
		return err
	}
	for _, m := range d.within(p, size) {
		m.opened, m.accessible, m.peers = true, true, d.peers
	}
	return nil
}

// within returns the mappings of a range that begins at one.
func (d *Device) within(p cuda.Ptr, size int64) (all []*mapping) {
	for at := p; at < p+cuda.Ptr(size); {
		m := d.maps[at]
		if m == nil {
			return all
		}
		all = append(all, m)
		at += cuda.Ptr(m.piece.size)
	}
	return all
}

// Unmap implements cuda.Device.
func (d *Device) Unmap(p cuda.Ptr, size int64) error {
	d.begin()
	defer d.mu.Unlock()
	return d.unmap(p, size)
}

func (d *Device) unmap(p cuda.Ptr, size int64) (errs error) {
	if err := d.Device.Unmap(p, size); err != nil {
		return err
	}
	for _, m := range d.within(p, size) {
		delete(d.maps, m.p)
		of := m.piece
		of.at = slices.DeleteFunc(of.at, func(other *mapping) bool { return other == m })
		if of.held || len(of.at) > 0 {
			continue
		}
		if err := d.Device.Release(of.real); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		of.real = 0
		d.forgetPiece(of)
	}
	return errs
}

func (d *Device) forgetPiece(p *piece) {
	for h, other := range d.pieces {
		if other == p {
			d.forget(h, p)
			return
		}
	}
}

// MemAlloc implements cuda.Device, by memory that is mapped. Its size is rounded up to cuda.Granularity.
func (d *Device) MemAlloc(size int64) (cuda.Ptr, error) {
	d.begin()
	defer d.mu.Unlock()
	size = (size + cuda.Granularity - 1) / cuda.Granularity * cuda.Granularity
	p, err := d.reserve(size)
	if err != nil {
		return 0, err
	}
	h, err := d.create(size)
	if err != nil {
		return 0, errors.Join(err, d.unreserve(p, size))
	}
	d.allocs[p] = &alloc{h, size}
	if err = d.mapAt(p, h); err == nil {
		err = d.open(p, size)
	}
	if err != nil {
		return 0, errors.Join(err, d.free(p, d.allocs[p]))
	}
	return p, nil
}

// MemFree implements cuda.Device. Like cuMemFree it waits for all work of the device.
func (d *Device) MemFree(p cuda.Ptr) error {
	d.begin()
	defer d.mu.Unlock()
	a := d.allocs[p]
	if a == nil {
		return fmt.Errorf("%#x was not allocated", p)
	}
	if err := d.Device.Synchronize(); err != nil {
		return err
	}
	return d.free(p, a)
}

// free can be called again where it failed.
func (d *Device) free(p cuda.Ptr, a *alloc) error {
	if d.maps[p] != nil {
		if err := d.unmap(p, a.size); err != nil {
			return err
		}
	}
	if d.pieces[a.handle] != nil {
		if err := d.release(a.handle); err != nil {
			return err
		}
	}
	if err := d.unreserve(p, a.size); err != nil {
		return err
	}
	delete(d.allocs, p)
	return nil
}
