package driver

// #include "driver.h"
import "C"

import (
	"unsafe"

	"gm/internal/cuda"
)

// StreamCreate makes a stream that does not wait for the legacy default stream (cuStreamCreate, CU_STREAM_NON_BLOCKING).
func (d *Device) StreamCreate() (cuda.Stream, error) {
	r := C.gm_stream_create(d.c)
	return cuda.Stream(r.value[0]), d.library.check(r)
}

// StreamDestroy destroys a stream; work that is queued in it still runs (cuStreamDestroy).
func (d *Device) StreamDestroy(s cuda.Stream) error {
	return d.library.check(C.gm_stream_destroy(d.c, C.uintptr_t(s)))
}

// StreamSynchronize implements cuda.Device.
func (d *Device) StreamSynchronize(s cuda.Stream) error {
	return d.library.check(C.gm_stream_synchronize(d.c, C.uintptr_t(s)))
}

// StreamWaitEvent implements cuda.Device.
func (d *Device) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	return d.library.check(C.gm_stream_wait_event(d.c, C.uintptr_t(s), C.uintptr_t(e)))
}

// Capturing reports whether work in s goes into a graph instead of to the device (cuStreamIsCapturing). It is also true for the legacy
// default stream while a stream that waits for it is captured: neither may be used then. It is false for drivers older than CUDA 10.0.
func (d *Device) Capturing(s cuda.Stream) (bool, error) {
	r := C.gm_stream_capturing(d.c, C.uintptr_t(s))
	if r.code == codeCaptureImplicit {
		return true, nil
	}
	return r.value[0] != 0, d.library.check(r)
}

// MemsetD32Async sets words 4-byte words at p to value, in stream s (cuMemsetD32Async).
func (d *Device) MemsetD32Async(p cuda.Ptr, value uint32, words int64, s cuda.Stream) error {
	return d.library.check(C.gm_memset32(d.c, C.uint64_t(p), C.uint32_t(value), C.uint64_t(words), C.uintptr_t(s)))
}

// MemcpyDtoH copies device memory at src to dst, in the legacy default stream, and waits for it (cuMemcpyDtoH).
func (d *Device) MemcpyDtoH(dst []byte, src cuda.Ptr) error {
	return d.library.check(C.gm_copy_to_host(d.c, unsafe.Pointer(unsafe.SliceData(dst)), C.uint64_t(src), C.uint64_t(len(dst))))
}

// MemcpyHtoD copies src to device memory at dst, in the legacy default stream, and waits until src may be changed (cuMemcpyHtoD).
func (d *Device) MemcpyHtoD(dst cuda.Ptr, src []byte) error {
	return d.library.check(C.gm_copy_to_device(d.c, C.uint64_t(dst), unsafe.Pointer(unsafe.SliceData(src)), C.uint64_t(len(src))))
}
