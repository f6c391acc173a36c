package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Pool numbers a private pool of memory, such as a CUDA graph's; 0 is the default pool.
type Pool int32

// MaxSize is the largest request that an allocator considers, in bytes: far above any GPU, far below an overflow.
const MaxSize = 1 << 47

// Allocator hands out device memory. It is not safe for concurrent use.
//
// A request of 0 bytes gets address 0, and freeing address 0 does nothing.
type Allocator interface {
	// Malloc returns the address of size bytes for work on stream. Memory never passes from one pool to another. If the device has no room
	// even after the cache was released, the error is an *OOMError.
	Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error)
	// Free frees what Malloc returned. The stream of the block may reuse the memory at once. If RecordStream named other streams, the
	// memory is reused only after they are done with it. An error for a known address comes from the housekeeping after the free, such as
	// an event that could not be recorded: the block is then free, and p must not be freed again.
	Free(p cuda.Ptr) error
	// RecordStream notes that stream also uses the memory at p.
	RecordStream(p cuda.Ptr, stream cuda.Stream) error
	// Empty releases cached memory to the device.
	Empty() error
	// Stats returns the account so far.
	Stats() Stats
	// Holdings returns all memory that is taken from the device: the sizes add up to Stats().Reserved.
	Holdings() []Holding
}

// Stats is an allocator's account. Sizes are in bytes.
type Stats struct {
	Allocated     int64 // in blocks that are handed out now, rounding included
	PeakAllocated int64
	Reserved      int64 // taken from the device now
	PeakReserved  int64
	Retries       int64 // times that the cache was emptied because the device was full
}

func (s *Stats) allocate(n int64) {
	s.Allocated += n
	s.PeakAllocated = max(s.PeakAllocated, s.Allocated)
}

func (s *Stats) reserve(n int64) {
	s.Reserved += n
	s.PeakReserved = max(s.PeakReserved, s.Reserved)
}

// OOMError is the error of a request that cannot be met.
type OOMError struct {
	Size      int64 // bytes requested
	Allocated int64 // bytes handed out at that time
	Reserved  int64 // bytes taken from the device at that time
}

// Error implements error.
func (e *OOMError) Error() string {
	return fmt.Sprintf("out of memory: %d bytes requested, %d allocated, %d reserved", e.Size, e.Allocated, e.Reserved)
}

// Unwrap makes an OOMError a cuda.ErrOutOfMemory.
func (e *OOMError) Unwrap() error { return cuda.ErrOutOfMemory }

func (s *Stats) oom(size int64) error {
	return &OOMError{Size: size, Allocated: s.Allocated, Reserved: s.Reserved}
}

var errUnknownAddress = errors.New("address is not allocated")

func checkSize(size int64) error {
	if size < 0 || size > MaxSize {
		return fmt.Errorf("malloc of %d bytes: the size is not between 0 and %d", size, int64(MaxSize))
	}
	return nil
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }
