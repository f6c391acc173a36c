// Package retry is a device whose frees always succeed for the caller: a free that the driver refuses is retried later, so that an
// allocator need not handle memory that is half released.
package retry

import (
	"errors"
	"slices"

	"gm/internal/cuda"
)

// Device is a cuda.Device whose Unmap, Release, AddressFree and MemFree return no error. A call that fails is owed. It is retried at the
// next of these calls, before a mapping, when the device is full, and by Settle. Until it succeeds, physical memory stays in use.
type Device struct {
	cuda.Device
	tell func(call string, err error) // called once for each call that failed, except those that are only impossible during a capture

	unmaps    []span
	addresses []span
	handles   []cuda.Handle
	allocs    []cuda.Ptr
}

// span is a range of addresses.
type span struct {
	ptr  cuda.Ptr
	size int64
}

func (s span) meets(p cuda.Ptr, size int64) bool {
	return s.ptr < p+cuda.Ptr(size) && p < s.ptr+cuda.Ptr(s.size)
}

// New returns a device that retries the failed frees of dev. tell is called for each failure.
func New(dev cuda.Device, tell func(call string, err error)) *Device {
	return &Device{Device: dev, tell: tell}
}

// Owes reports whether any call is owed.
func (d *Device) Owes() bool {
	return len(d.unmaps)+len(d.addresses)+len(d.handles)+len(d.allocs) > 0
}

// Settle retries the calls that are owed.
func (d *Device) Settle() {
	if !d.Owes() {
		return
	}
	d.unmaps = remaining(d.unmaps, func(s span) error { return d.Device.Unmap(s.ptr, s.size) })
	d.allocs = remaining(d.allocs, d.Device.MemFree)
	if len(d.unmaps) > 0 { // what is mapped there is unknown
		return
	}
	d.handles = remaining(d.handles, d.Device.Release)
	d.addresses = remaining(d.addresses, func(s span) error { return d.Device.AddressFree(s.ptr, s.size) })
}

// remaining retries owed calls and returns those that failed again. One call that the driver always refuses does not stop the others, but
// after a few refusals in a row the driver is likely to refuse all.
func remaining[T any](owed []T, undo func(T) error) []T {
	kept, refused := owed[:0], 0
	for i, x := range owed {
		if undo(x) == nil {
			refused = 0
			continue
		}
		kept = append(kept, x)
		if refused++; refused == refusals {
			return append(kept, owed[i+1:]...)
		}
	}
	return kept
}

// refusals is the number of refusals in a row that end an attempt.
const refusals = 4

// undo handles the result of a call. If it failed, keep notes the call as owed.
func (d *Device) undo(call string, err error, keep func()) error {
	if err == nil {
		return nil
	}
	keep()
	if !errors.Is(err, cuda.ErrCapturing) {
		d.tell(call, err)
	}
	return nil
}

// Unmap implements cuda.Device.
func (d *Device) Unmap(p cuda.Ptr, size int64) error {
	d.Settle()
	return d.undo("unmap", d.Device.Unmap(p, size), func() { d.unmaps = append(d.unmaps, span{p, size}) })
}

// Release implements cuda.Device. While any unmapping is owed, the release waits: the handle may be mapped there, and its memory would
// stay in use.
func (d *Device) Release(h cuda.Handle) error {
	d.Settle()
	if len(d.unmaps) > 0 {
		d.handles = append(d.handles, h)
		return nil
	}
	return d.undo("release", d.Device.Release(h), func() { d.handles = append(d.handles, h) })
}

// AddressFree implements cuda.Device.
func (d *Device) AddressFree(p cuda.Ptr, size int64) error {
	d.Settle()
	keep := func() { d.addresses = append(d.addresses, span{p, size}) }
	if d.mapped(p, size) {
		keep()
		return nil
	}
	return d.undo("free addresses", d.Device.AddressFree(p, size), keep)
}

// MemFree implements cuda.Device.
func (d *Device) MemFree(p cuda.Ptr) error {
	d.Settle()
	return d.undo("free", d.Device.MemFree(p), func() { d.allocs = append(d.allocs, p) })
}

// mapped reports whether a range overlaps one whose unmapping is owed.
func (d *Device) mapped(p cuda.Ptr, size int64) bool {
	return slices.ContainsFunc(d.unmaps, func(s span) bool { return s.meets(p, size) })
}

// Map implements cuda.Device. The driver refuses addresses at which something is still mapped.
func (d *Device) Map(p cuda.Ptr, h cuda.Handle) error {
	d.Settle()
	return d.Device.Map(p, h)
}

// MemInfo implements cuda.Device.
func (d *Device) MemInfo() (free, total int64, err error) {
	d.Settle()
	return d.Device.MemInfo()
}

// Create implements cuda.Device.
func (d *Device) Create(size int64) (cuda.Handle, error) {
	h, err := d.Device.Create(size)
	if d.Owes() && errors.Is(err, cuda.ErrOutOfMemory) {
		d.Settle()
		return d.Device.Create(size)
	}
	return h, err
}

// MemAlloc implements cuda.Device.
func (d *Device) MemAlloc(size int64) (cuda.Ptr, error) {
	p, err := d.Device.MemAlloc(size)
	if d.Owes() && errors.Is(err, cuda.ErrOutOfMemory) {
		d.Settle()
		return d.Device.MemAlloc(size)
	}
	return p, err
}
