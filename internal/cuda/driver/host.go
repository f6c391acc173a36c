package driver

// #include "driver.h"
import "C"

import (
	"unsafe"

	"gm/internal/cuda"
)

// HostRegister pins host memory outside of Go's heap, so that copies of it are asynchronous (cuMemHostRegister). Touch its pages before:
// the driver is slow at that.
func (d *Device) HostRegister(memory []byte) error {
	return d.library.check(C.gm_host_register(d.c, unsafe.Pointer(unsafe.SliceData(memory)), C.uint64_t(len(memory))))
}

// HostPointers says whether kernels use registered memory at the address that it has on the host
// (CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM).
func (d *Device) HostPointers() bool {
	can, err := d.library.attribute(d.c.device, C.GM_ATTRIBUTE_HOST_POINTER)
	return err == nil && can != 0
}

// HostUnregister unpins memory that was registered as one piece (cuMemHostUnregister).
func (d *Device) HostUnregister(memory []byte) error {
	return d.library.check(C.gm_host_unregister(d.c, unsafe.Pointer(unsafe.SliceData(memory))))
}

// MemcpyDtoHAsync copies device memory at src to dst, which is registered, in stream s (cuMemcpyDtoHAsync).
func (d *Device) MemcpyDtoHAsync(dst []byte, src cuda.Ptr, s cuda.Stream) error {
	to := unsafe.Pointer(unsafe.SliceData(dst))
	return d.library.check(C.gm_copy_to_host_async(d.c, to, C.uint64_t(src), C.uint64_t(len(dst)), C.uintptr_t(s)))
}

// MemcpyHtoDAsync copies src, which is registered, to device memory at dst, in stream s (cuMemcpyHtoDAsync).
func (d *Device) MemcpyHtoDAsync(dst cuda.Ptr, src []byte, s cuda.Stream) error {
	from := unsafe.Pointer(unsafe.SliceData(src))
	return d.library.check(C.gm_copy_to_device_async(d.c, C.uint64_t(dst), from, C.uint64_t(len(src)), C.uintptr_t(s)))
}

// MemcpyDtoDAsync copies size bytes of device memory from src to dst, in stream s (cuMemcpyDtoDAsync).
func (d *Device) MemcpyDtoDAsync(dst, src cuda.Ptr, size int64, s cuda.Stream) error {
	return d.library.check(C.gm_copy_within_device(d.c, C.uint64_t(dst), C.uint64_t(src), C.uint64_t(size), C.uintptr_t(s)))
}

// Memcpy2DAsync copies rows of width bytes, of which each begins pitch bytes behind the one before, from src to dst, where they lie one behind
// the other, in stream s (cuMemcpy2DAsync). Both are memory of the device, or of the host that the device uses in place.
func (d *Device) Memcpy2DAsync(dst, src cuda.Ptr, pitch, width, rows int64, s cuda.Stream) error {
	return d.library.check(C.gm_copy_rows(d.c, C.uint64_t(dst), C.uint64_t(src), C.uint64_t(pitch), C.uint64_t(width), C.uint64_t(rows), C.uintptr_t(s)))
}

// PCIBusID returns the device's PCI address, such as 0000:1B:00.0 (cuDeviceGetPCIBusId).
func (d *Device) PCIBusID() (string, error) { return d.library.pciBusID(d.c.device) }

func (l *Library) pciBusID(device C.int) (string, error) {
	var text [32]byte
	c := (*C.char)(unsafe.Pointer(&text[0]))
	if err := l.check(C.gm_device_pci_bus_id(l.c, device, c, C.int(len(text)))); err != nil {
		return "", err
	}
	return C.GoString(c), nil
}
