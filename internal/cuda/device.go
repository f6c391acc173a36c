// Package cuda is the device interface of gm: memory, virtual addresses and events of a GPU.
package cuda

import "errors"

// Ptr is a device address; 0 is none.
type Ptr uint64

// Stream is a CUDA stream handle; 0 is the legacy default stream.
type Stream int64

// The stream handles that are no pointers.
const (
	LegacyStream    Stream = 1 // the same as 0
	PerThreadStream Stream = 2 // another one in each thread
)

// Handle names physical memory made by Create; 0 is none.
type Handle int64

// Event names a point in a stream; 0 is none.
type Event int64

// ErrOutOfMemory is CUDA_ERROR_OUT_OF_MEMORY: the device has no room for the request.
var ErrOutOfMemory = errors.New("out of memory")

// Granularity is the unit of physical memory and mappings, in bytes: their sizes are multiples of it (cuMemGetAllocationGranularity,
// minimum and recommended, on an H200).
const Granularity = 2 << 20

// AllocSize returns the bytes of the device that cuMemAlloc takes for a request of size bytes. From 1 MiB on they are a multiple of 2 MiB.
// Smaller requests share such pages; each counts as its size rounded up to 512 bytes.
func AllocSize(size int64) int64 {
	multiple := int64(512)
	if size >= 1<<20 {
		multiple = Granularity
	}
	return (size + multiple - 1) / multiple * multiple
}

// Device is one GPU, as seen by what manages its memory. Its methods are those of the CUDA driver API and mean what
// they mean there. A Device is not safe for concurrent use.
type Device interface {
	// MemAlloc allocates size bytes of device memory (cuMemAlloc).
	MemAlloc(size int64) (Ptr, error)
	// MemFree frees what MemAlloc returned (cuMemFree).
	MemFree(p Ptr) error

	// AddressReserve reserves size bytes of address range, a multiple of Granularity (cuMemAddressReserve).
	AddressReserve(size int64) (Ptr, error)
	// AddressFree releases a whole reserved range; nothing may be mapped in it (cuMemAddressFree).
	AddressFree(p Ptr, size int64) error
	// Create makes size bytes of physical memory, a multiple of Granularity (cuMemCreate).
	Create(size int64) (Handle, error)
	// Release releases a handle; its memory is freed once it is mapped nowhere (cuMemRelease).
	Release(h Handle) error
	// Map maps the whole of h at p, inside a reserved range. One handle may be mapped at several addresses (cuMemMap).
	Map(p Ptr, h Handle) error
	// SetAccess makes the mapped range [p, p+size) readable and writable (cuMemSetAccess).
	SetAccess(p Ptr, size int64) error
	// Unmap unmaps the range [p, p+size), which begins and ends at the bounds of mappings (cuMemUnmap).
	Unmap(p Ptr, size int64) error

	// EventRecord records a new event after the work now queued in stream s (cuEventCreate, cuEventRecord).
	EventRecord(s Stream) (Event, error)
	// EventQuery reports whether e has passed (cuEventQuery).
	EventQuery(e Event) (bool, error)
	// EventSynchronize waits until e has passed (cuEventSynchronize).
	EventSynchronize(e Event) error
	// StreamWaitEvent makes work queued in stream s from now on wait until e has passed (cuStreamWaitEvent).
	StreamWaitEvent(s Stream, e Event) error
	// EventDestroy destroys e (cuEventDestroy).
	EventDestroy(e Event) error
	// StreamSynchronize waits for all work in stream s (cuStreamSynchronize).
	StreamSynchronize(s Stream) error

	// MemInfo returns the free and the total bytes of device memory (cuMemGetInfo).
	MemInfo() (free, total int64, err error)
}
