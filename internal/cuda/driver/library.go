// Package driver is the CUDA driver API of the installed libcuda.so.1. Load finds the library, so that programs build and start without
// one.
//
// Each call runs in the primary context of its device and restores the caller's current context. Calls may come from any thread, also while
// another stream is captured into a graph. Nothing is printed.
package driver

// #cgo CFLAGS: -std=gnu11 -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Library is the driver. It is never unloaded.
type Library struct {
	c *C.struct_gm_library

	mu     sync.Mutex
	pauses map[C.int]*pauses // of all devices of a GPU
}

// Load loads libcuda.so.1 and initialises it (cuInit). It fails without a driver of CUDA 10.2 or later, and without a GPU.
func Load() (*Library, error) {
	var why [256]byte
	c := C.gm_library_load((*C.char)(unsafe.Pointer(&why[0])), C.int(len(why)))
	if c == nil {
		text := C.GoString((*C.char)(unsafe.Pointer(&why[0])))
		if strings.HasSuffix(text, "No such file or directory") {
			return nil, errors.New("driver: libcuda.so.1 is not there: is NVIDIA's driver installed?")
		}
		return nil, errors.New("driver: " + text)
	}
	l := &Library{c: c, pauses: map[C.int]*pauses{}}
	if err := l.check(C.gm_driver_init(c)); err != nil {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("driver: libcuda.so.1: %w", err)
	}
	return l, nil
}

// Devices returns the number of GPUs (cuDeviceGetCount).
func (l *Library) Devices() (int, error) {
	r := C.gm_device_count(l.c)
	return int(r.value[0]), l.check(r)
}

// Version returns the newest CUDA version that the driver supports: 13010 is CUDA 13.1 (cuDriverGetVersion).
func (l *Library) Version() (int, error) {
	r := C.gm_driver_version(l.c)
	return int(r.value[0]), l.check(r)
}

// Open retains the primary context of a GPU, which CUDA's runtime and PyTorch also use. The caller must close the device.
func (l *Library) Open(ordinal int) (*Device, error) {
	d, err := l.open(ordinal)
	if err != nil {
		return nil, fmt.Errorf("driver: open device %d: %w", ordinal, err)
	}
	return d, nil
}

func (l *Library) open(ordinal int) (*Device, error) {
	got := C.gm_device_get(l.c, C.int(ordinal))
	if err := l.check(got); err != nil {
		return nil, err
	}
	device := C.int(got.value[0])
	name, err := l.name(device)
	if err != nil {
		return nil, err
	}
	share, err := l.share(device)
	if err != nil {
		return nil, err
	}
	retained := C.gm_context_retain(l.c, device)
	if err := l.check(retained); err != nil {
		return nil, err
	}
	return newDevice(l, device, uintptr(retained.value[0]), name, share), nil
}

// PCIBusID returns the PCI address of the device with an ordinal, without a context on it (cuDeviceGetPCIBusId).
func (l *Library) PCIBusID(ordinal int) (string, error) {
	got := C.gm_device_get(l.c, C.int(ordinal))
	if err := l.check(got); err != nil {
		return "", err
	}
	return l.pciBusID(C.int(got.value[0]))
}

func (l *Library) name(device C.int) (string, error) {
	var text [256]byte
	c := (*C.char)(unsafe.Pointer(&text[0]))
	if err := l.check(C.gm_device_name(l.c, device, c, C.int(len(text)))); err != nil {
		return "", err
	}
	return C.GoString(c), nil
}

// share returns the uses of physical memory that the device supports.
func (l *Library) share(device C.int) (uint32, error) {
	file, err := l.attribute(device, C.GM_ATTRIBUTE_FILE_DESCRIPTOR)
	if err != nil || file == 0 {
		return C.GM_SHARE_NONE, err
	}
	if rdma, err := l.attribute(device, C.GM_ATTRIBUTE_RDMA); err == nil && rdma != 0 { // drivers before CUDA 11 do not know it
		return C.GM_SHARE_FILE_RDMA, nil
	}
	return C.GM_SHARE_FILE, nil
}

func (l *Library) attribute(device, attribute C.int) (int, error) {
	r := C.gm_device_attribute(l.c, device, attribute)
	return int(r.value[0]), l.check(r)
}

// check returns the error of a call, nil if it succeeded.
func (l *Library) check(r C.struct_gm_result) error {
	if r.code == 0 {
		return nil
	}
	return l.failure(r)
}

func (l *Library) failure(r C.struct_gm_result) error {
	name := "unknown error"
	if text := C.gm_error_name(l.c, r.code); text != nil {
		name = C.GoString(text)
	}
	return &Error{Call: C.GoString(r.call), Code: int(r.code), name: name}
}
