package main

// #include "libgm.h"
import "C"

import (
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

//export go_blocks
func go_blocks(device C.int, to *C.struct_gm_block, room C.size_t) (n C.int64_t) {
	defer guard(device)
	return C.int64_t(self.gpu(device).blocks(unsafe.Slice(to, room)))
}

//export go_find
func go_find(device C.int, p C.uint64_t, b *C.struct_gm_block) (known C.bool) {
	defer guard(device)
	return C.bool(self.gpu(device).describe(cuda.Ptr(p), b))
}

// blocks writes the blocks of all segments, as many as there is room for, and returns their number.
func (g *gpu) blocks(to []C.struct_gm_block) (n int) {
	for _, s := range g.segments() {
		for _, b := range s.Blocks {
			if n < len(to) {
				to[n] = C.struct_gm_block{
					address: C.uint64_t(b.Address), segment: C.uint64_t(s.Address), size: C.int64_t(b.Size),
					requested: C.int64_t(b.RequestedSize), stream: C.uint64_t(s.Stream),
					id0: C.uint64_t(s.PoolID[0]), id1: C.uint64_t(s.PoolID[1]), state: C.int32_t(stateOf(b.State)),
				}
				if s.SegmentType == "small" {
					to[n].small = 1
				}
			}
			n++
		}
	}
	return n
}

func stateOf(state string) int {
	switch state {
	case blocks.BlockUsed.String():
		return C.GM_USED
	case blocks.BlockPending.String():
		return C.GM_PENDING
	}
	return C.GM_FREE
}

// describe fills in a live request as the only block of a segment.
func (g *gpu) describe(p cuda.Ptr, b *C.struct_gm_block) bool {
	e, ok := g.find(p)
	if !ok {
		return false
	}
	*b = C.struct_gm_block{
		address: C.uint64_t(p), segment: C.uint64_t(p), size: C.int64_t(e.taken), requested: C.int64_t(e.requested),
		stream: C.uint64_t(e.stream), state: C.GM_USED,
	}
	if e.taken <= smallRequest {
		b.small = 1
	}
	for id, pool := range g.pools.numbers {
		if pool == blocks.Pool(e.pool) {
			b.id0, b.id1 = C.uint64_t(id.id0), C.uint64_t(id.id1)
		}
	}
	return true
}
