package overview

import (
	"math/bits"

	"gm/formats/trace"
)

// digest sums up what a framework asks of its allocator: the sizes and streams of allocations, in order, and which is freed when.
// Streams and allocations count by their first use, as handles and ids differ between processes that do the same.
type digest struct {
	sum     uint64
	allocs  int64
	numbers map[int64]int64 // of the live allocations, by id
	streams map[int64]int64
	pools   map[int32]int64
}

func newDigest() digest {
	return digest{numbers: map[int64]int64{}, streams: map[int64]int64{}, pools: map[int32]int64{}}
}

// add processes a row of the framework's level.
func (d *digest) add(e *trace.Event) {
	switch e.Op {
	case trace.OpAlloc:
		d.numbers[e.ID] = d.allocs
		d.allocs++
		d.mix(1, e.Size, nth(d.streams, e.Stream), nth(d.pools, e.Pool))
	case trace.OpFree, trace.OpFreeCompleted:
		if n, ok := d.numbers[e.ID]; ok {
			delete(d.numbers, e.ID)
			d.mix(2, n)
		}
	}
}

func nth[K comparable](seen map[K]int64, key K) int64 {
	n, ok := seen[key]
	if !ok {
		n = int64(len(seen))
		seen[key] = n
	}
	return n
}

// The multiplier of Knuth's linear congruential generator MMIX.
const multiplier = 6364136223846793005

func (d *digest) mix(values ...int64) {
	for _, v := range values {
		d.sum = bits.RotateLeft64((d.sum^uint64(v))*multiplier, 31) + 1
	}
}
