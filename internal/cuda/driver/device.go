package driver

// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"gm/internal/cuda"
)

// Device is a GPU. Unlike other implementations of cuda.Device it is safe for concurrent use.
type Device struct {
	library *Library
	c       *C.struct_gm_device
	name    string
	share   atomic.Uint32 // possible uses of physical memory, one of enum gm_share
	access  atomic.Pointer[[]C.struct_gm_access]
	pauses  *pauses

	mu        sync.Mutex
	events    []cuda.Event          // destroyed ones, to be reused
	intervals []cuda.Interval       // the same, for events that measure time
	sizes     map[cuda.Handle]int64 // of physical memory not yet released, in bytes
}

var _ cuda.Device = (*Device)(nil)

func newDevice(l *Library, device C.int, context uintptr, name string, share uint32) *Device {
	d := &Device{library: l, name: name, pauses: l.pausesOf(device), sizes: map[cuda.Handle]int64{}}
	d.c = (*C.struct_gm_device)(C.calloc(1, C.sizeof_struct_gm_device))
	d.c.library, d.c.device = l.c, device
	d.c.context = C.uintptr_t(context)
	d.share.Store(share)
	d.access.Store(&[]C.struct_gm_access{accessOf(device)})
	return d
}

// Close destroys the unused events and releases the primary context. Memory that was not freed stays while others hold the context.
func (d *Device) Close() error {
	var errs []error
	for _, i := range d.intervals {
		d.events = append(d.events, i.Begin, i.End)
	}
	for _, e := range d.events {
		errs = append(errs, d.library.check(C.gm_event_destroy(d.c, C.uintptr_t(e))))
	}
	d.events, d.intervals = nil, nil
	errs = append(errs, d.pauses.close(d))
	errs = append(errs, d.library.check(C.gm_context_release(d.library.c, d.c.device)))
	C.free(unsafe.Pointer(d.c))
	d.c = nil
	return errors.Join(errs...)
}

// Name returns the product's name, such as "NVIDIA H200" (cuDeviceGetName).
func (d *Device) Name() string { return d.name }

// MemAlloc implements cuda.Device.
func (d *Device) MemAlloc(size int64) (cuda.Ptr, error) {
	r := C.gm_mem_alloc(d.c, C.uint64_t(size))
	return cuda.Ptr(r.value[0]), d.library.check(r)
}

// MemFree implements cuda.Device. The driver waits for all work of the device.
func (d *Device) MemFree(p cuda.Ptr) error {
	return d.library.check(C.gm_mem_free(d.c, C.uint64_t(p)))
}

// MemInfo implements cuda.Device.
func (d *Device) MemInfo() (free, total int64, err error) {
	r := C.gm_mem_info(d.c)
	return int64(r.value[0]), int64(r.value[1]), d.library.check(r)
}

// Synchronize waits for all work in the device's primary context (cuCtxSynchronize).
func (d *Device) Synchronize() error { return d.library.check(C.gm_synchronize(d.c)) }
