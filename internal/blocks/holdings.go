package blocks

import "gm/internal/cuda"

// Holding is a unit of memory that an allocator took from the device and could release: a segment, a mapped stretch of an expandable
// segment, a piece, the arena of a plan.
type Holding struct {
	Address cuda.Ptr // where it begins, or one of the addresses at which it is mapped
	Size    int64    // bytes
	Stream  cuda.Stream
	Pool    Pool
	Small   bool  // of PyTorch's pool for small requests
	Planned bool  // the arena of a plan
	Pending int64 // bytes in blocks that were freed and that other streams still use
	Growth  int64 // bytes that are free behind the last block of an expandable segment's mapped pages
	Uses    []Use

	// Round returns the least bytes that a request of size bytes takes.
	Round func(size int64) int64
}

// Use is a block that is handed out, or the part of it that lies in a Holding.
type Use struct {
	Block cuda.Ptr // the address that Malloc returned
	Bytes int64
}

// Used returns the bytes in blocks that are handed out.
func (h *Holding) Used() (n int64) {
	for _, u := range h.Uses {
		n += u.Bytes
	}
	return n
}

// Free returns the bytes that belong to no block.
func (h *Holding) Free() int64 { return h.Size - h.Pending - h.Used() }

// toMinBlock rounds up to a multiple of 512 bytes, the unit of most allocators.
func toMinBlock(size int64) int64 { return roundUp(size, minBlockSize) }
