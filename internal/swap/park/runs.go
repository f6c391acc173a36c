package park

import (
	"cmp"
	"slices"
	"sort"

	"gm/internal/cuda"
)

// run is mappings side by side in one range of reserved addresses. One call of the driver unmaps or opens them all: beside copies each call
// takes up to a millisecond.
type run struct {
	p    cuda.Ptr
	size int64 // bytes
	of   []*mapping
}

// runs returns mappings in runs, by address.
func runs(all []*mapping) (found []run) {
	slices.SortFunc(all, func(a, b *mapping) int { return cmp.Compare(a.p, b.p) })
	for _, m := range all {
		if n := len(found) - 1; n >= 0 && found[n].p+cuda.Ptr(found[n].size) == m.p && found[n].of[0].reserved == m.reserved {
			found[n].size += m.piece.size
			found[n].of = append(found[n].of, m)
			continue
		}
		found = append(found, run{m.p, m.piece.size, []*mapping{m}})
	}
	return found
}

// mappings returns those of pieces that are wanted.
func mappings(pieces []*piece, wanted func(*mapping) bool) (all []*mapping) {
	for _, p := range pieces {
		for _, m := range p.at {
			if wanted(m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// byAddress compares pieces by where they are first.
func byAddress(a, b *piece) int { return cmp.Compare(a.first(), b.first()) }

// first returns the address that a piece was first mapped at, 0 if it is not.
func (p *piece) first() cuda.Ptr {
	if len(p.at) == 0 {
		return 0
	}
	return p.at[0].p
}

// AddressReserve implements cuda.Device.
func (d *Device) AddressReserve(size int64) (cuda.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reserve(size)
}

func (d *Device) reserve(size int64) (cuda.Ptr, error) {
	p, err := d.Device.AddressReserve(size)
	if err == nil {
		d.reserved = slices.Insert(d.reserved, d.reservation(p)+1, p)
	}
	return p, err
}

// reservation returns the place in reserved of the range that an address is in, -1 if it is before all.
func (d *Device) reservation(p cuda.Ptr) int {
	return sort.Search(len(d.reserved), func(i int) bool { return d.reserved[i] > p }) - 1
}

// AddressFree implements cuda.Device.
func (d *Device) AddressFree(p cuda.Ptr, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreserve(p, size)
}

func (d *Device) unreserve(p cuda.Ptr, size int64) error {
	if err := d.Device.AddressFree(p, size); err != nil {
		return err
	}
	if i := d.reservation(p); i >= 0 && d.reserved[i] == p {
		d.reserved = slices.Delete(d.reserved, i, i+1)
	}
	return nil
}
