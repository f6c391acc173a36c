// Package live runs the requests of a trace or a plan through an allocator on a GPU. It measures each request and each driver call, and
// checks that a tensor keeps what was written into it until its end.
package live

import (
	"gm/internal/cuda"
	"gm/internal/cuda/driver"
)

// GPU is a device that has streams, and memory with contents.
type GPU interface {
	cuda.Device
	// StreamCreate creates a stream that does not wait for others (cuStreamCreate).
	StreamCreate() (cuda.Stream, error)
	// StreamDestroy destroys a stream (cuStreamDestroy).
	StreamDestroy(s cuda.Stream) error
	// MemsetD32Async sets 4-byte words to value, in stream s (cuMemsetD32Async).
	MemsetD32Async(p cuda.Ptr, value uint32, words int64, s cuda.Stream) error
	// MemcpyDtoH copies device memory to the host and waits for no stream but the legacy default one (cuMemcpyDtoH).
	MemcpyDtoH(dst []byte, src cuda.Ptr) error
	// Synchronize waits for all work (cuCtxSynchronize).
	Synchronize() error
}

var (
	_ GPU = (*driver.Device)(nil)
	_ GPU = (*Simulated)(nil)
)
