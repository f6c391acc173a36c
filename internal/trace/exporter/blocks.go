package exporter

import "gm/formats/trace"

// block is an allocation.
type block struct {
	addr    uint64
	size    int64 // bytes as requested
	stream  int64
	pool    int32
	stack   int32
	tag     int32
	whole   uint64 // bytes of the allocator's block, which holds it
	pending bool   // its free is requested
}

// liveBlocks tracks the live blocks of a device. Blocks of unknown address get a made-up one.
type liveBlocks struct {
	live map[int64]*block // by id
	next uint64
	free map[uint64][]uint64 // made-up addresses of freed blocks, by size
}

// Made-up addresses are above those of CUDA, and at multiples of PyTorch's rounding.
const (
	madeUp    = 1 << 48
	alignment = 512
)

func newLiveBlocks() *liveBlocks {
	return &liveBlocks{live: map[int64]*block{}, next: madeUp, free: map[uint64][]uint64{}}
}

func (bs *liveBlocks) alloc(e *trace.Event) *block {
	b := &block{addr: e.Addr, size: e.Size, stream: e.Stream, pool: e.Pool, stack: e.Stack, tag: e.Tag}
	if b.addr == 0 {
		b.addr = bs.place(e.Size)
	}
	bs.live[e.ID] = b
	return b
}

// done removes a block that was freed.
func (bs *liveBlocks) done(id int64) {
	if b := bs.live[id]; b.addr >= madeUp {
		size := aligned(b.size)
		bs.free[size] = append(bs.free[size], b.addr)
	}
	delete(bs.live, id)
}

func (bs *liveBlocks) place(bytes int64) uint64 {
	size := aligned(bytes)
	if free := bs.free[size]; len(free) > 0 {
		bs.free[size] = free[:len(free)-1]
		return free[len(free)-1]
	}
	addr := bs.next
	bs.next += size
	return addr
}

func aligned(size int64) uint64 { return (uint64(size) + alignment - 1) / alignment * alignment }
