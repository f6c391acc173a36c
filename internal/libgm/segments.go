package main

// #include "libgm.h"
import "C"

import "gm/internal/cuda"

// extent is memory at an address: from cuMemAlloc, or a piece that is mapped.
type extent struct {
	size   int64
	handle cuda.Handle // of the piece
	stream cuda.Stream // of the request that it was taken or mapped for
	told   bool        // it is accessible, and the observer of segments knows
}

// tell tells the observer of segments of one range.
func (m *meter) tell(mapped bool, p cuda.Ptr, size int64, stream cuda.Stream) {
	C.gm_tell_segment(m.account.ordinal, C.bool(mapped), C.uint64_t(p), C.uint64_t(size), C.uint64_t(stream))
}

// tellRange tells of the pieces in a range that are not told of yet, or are, in ranges as long as possible.
func (m *meter) tellRange(mapped bool, p cuda.Ptr, size int64) {
	var begin cuda.Ptr
	var stream cuda.Stream
	flush := func(end cuda.Ptr) {
		if begin != 0 {
			m.tell(mapped, begin, int64(end-begin), stream)
		}
		begin = 0
	}
	for at := p; at < p+cuda.Ptr(size); {
		x, ok := m.mapped[at]
		news := ok && x.told != mapped
		if begin != 0 && (!news || x.stream != stream) {
			flush(at)
		}
		if news {
			if begin == 0 {
				begin, stream = at, x.stream
			}
			x.told = mapped
			m.mapped[at] = x
		}
		at += cuda.Ptr(max(x.size, cuda.Granularity))
	}
	flush(p + cuda.Ptr(size))
}
