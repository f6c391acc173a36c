package driver

// #include "driver.h"
import "C"

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// AddressReserve implements cuda.Device.
func (d *Device) AddressReserve(size int64) (cuda.Ptr, error) {
	r := C.gm_address_reserve(d.c, C.uint64_t(size))
	return cuda.Ptr(r.value[0]), d.library.check(r)
}

// AddressFree implements cuda.Device.
func (d *Device) AddressFree(p cuda.Ptr, size int64) error {
	return d.library.check(C.gm_address_free(d.c, C.uint64_t(p), C.uint64_t(size)))
}

// Create implements cuda.Device. If the device supports it, the memory can be passed to other processes as a file descriptor, and network
// cards can read and write it.
func (d *Device) Create(size int64) (cuda.Handle, error) {
	share := d.share.Load()
	h, err := d.create(d.c.device, size, share)
	if err == nil || errors.Is(err, cuda.ErrOutOfMemory) || errors.Is(err, ErrShutdown) {
		return h, err
	}
	for share > C.GM_SHARE_NONE { // some drivers refuse what the device claims to support
		share--
		if h, again := d.create(d.c.device, size, share); again == nil {
			d.share.Store(share)
			return h, nil
		}
	}
	return 0, err
}

// create makes memory of a GPU.
func (d *Device) create(of C.int, size int64, share uint32) (cuda.Handle, error) {
	r := C.gm_create(d.c, of, C.uint64_t(size), share)
	if err := d.library.check(r); err != nil {
		return 0, err
	}
	h := cuda.Handle(r.value[0])
	d.mu.Lock()
	d.sizes[h] = size
	d.mu.Unlock()
	return h, nil
}

// Release implements cuda.Device.
func (d *Device) Release(h cuda.Handle) error {
	d.mu.Lock()
	size, held := d.sizes[h]
	delete(d.sizes, h) // before the driver can return the same handle again
	d.mu.Unlock()
	err := d.library.check(C.gm_release(d.c, C.uint64_t(h)))
	if err != nil && held {
		d.mu.Lock()
		d.sizes[h] = size
		d.mu.Unlock()
	}
	return err
}

// Map implements cuda.Device. The handle must be one of this device's Create.
func (d *Device) Map(p cuda.Ptr, h cuda.Handle) error {
	d.mu.Lock()
	size := d.sizes[h] // 0 for a handle that is not held, which the driver refuses
	d.mu.Unlock()
	return d.library.check(C.gm_map(d.c, C.uint64_t(p), C.uint64_t(size), C.uint64_t(h)))
}

// Unmap implements cuda.Device. It does not wait for work that uses the memory.
func (d *Device) Unmap(p cuda.Ptr, size int64) error {
	return d.library.check(C.gm_unmap(d.c, C.uint64_t(p), C.uint64_t(size)))
}

// SetAccess implements cuda.Device, for this device and its peers. Transfers to the host pause meanwhile.
func (d *Device) SetAccess(p cuda.Ptr, size int64) error {
	defer d.pauses.end(d.pauses.begin())
	access := *d.access.Load()
	return d.library.check(C.gm_set_access(d.c, C.uint64_t(p), C.uint64_t(size), &access[0], C.uint64_t(len(access))))
}

// SetReadOnly makes a mapped range readable for this device alone. Transfers do not pause for it, as few ranges are. A kernel that writes there ends the process's use of the device.
func (d *Device) SetReadOnly(p cuda.Ptr, size int64) error {
	access := accessOf(d.c.device)
	access.flags = C.GM_ACCESS_READ
	return d.library.check(C.gm_set_access(d.c, C.uint64_t(p), C.uint64_t(size), &access, 1))
}

// Peers makes SetAccess, from now on, also grant access to those of the GPUs with the given ordinals that can reach this one, so that
// copies between them work (cuDeviceCanAccessPeer). This device's own ordinal may be among them.
func (d *Device) Peers(ordinals []int) error {
	access := []C.struct_gm_access{accessOf(d.c.device)}
	for _, ordinal := range ordinals {
		peer, err := d.peer(ordinal)
		if err != nil {
			return fmt.Errorf("driver: peer %d of device %d: %w", ordinal, int(d.c.device), err)
		}
		if peer >= 0 {
			access = append(access, accessOf(peer))
		}
	}
	d.access.Store(&access)
	return nil
}

// Reaches says whether the GPU with an ordinal is another one, and can reach the memory of this one.
func (d *Device) Reaches(ordinal int) bool {
	peer, err := d.peer(ordinal)
	return err == nil && peer >= 0
}

// peer returns the device with an ordinal, -1 if it is this one or cannot reach it.
func (d *Device) peer(ordinal int) (C.int, error) {
	got := C.gm_device_get(d.library.c, C.int(ordinal))
	if err := d.library.check(got); err != nil {
		return -1, err
	}
	device := C.int(got.value[0])
	if device == d.c.device {
		return -1, nil
	}
	can := C.gm_device_can_access(d.library.c, device, d.c.device)
	if can.value[0] == 0 {
		device = -1
	}
	return device, d.library.check(can)
}

func accessOf(device C.int) C.struct_gm_access {
	return C.struct_gm_access{location_type: C.GM_LOCATION_DEVICE, location_id: device, flags: C.GM_ACCESS_READWRITE}
}
