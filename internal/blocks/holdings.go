package blocks

import "gm/internal/cuda"

// Holding is memory that an allocator took from the device as one and could give back as one: a segment, a mapped stretch of an
// expandable segment, a piece, the arena of a plan.
type Holding struct {
	Address cuda.Ptr // where it begins, or one of its places
	Size    int64    // bytes
	Stream  cuda.Stream
	Pool    Pool
	Small   bool  // of PyTorch's pool for small requests
	Planned bool  // the arena of a plan
	Pending int64 // bytes in blocks that were freed and that other streams still use
	Growth  int64 // bytes that are free behind the last block of an expandable segment's mapped pages
	Uses    []Use

	// Round returns what a request of so many bytes takes at the least.
	Round func(size int64) int64
}

// Use is a block that is handed out, or as much of it as a Holding has.
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

// Free returns the bytes in no block.
func (h *Holding) Free() int64 { return h.Size - h.Pending - h.Used() }

// toMinBlock rounds as allocators do that hand out multiples of 512 bytes.
func toMinBlock(size int64) int64 { return roundUp(size, minBlockSize) }
