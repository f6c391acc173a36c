package recording

import (
	"math/rand/v2"
	"testing"

	"gm/formats/trace"
)

// TestRanges compares Ranges with a table of who holds each byte.
func TestRanges(t *testing.T) {
	const bytes = 64
	ops := []trace.Op{trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var r Ranges
		var holder [bytes + 1]int // of the byte before address i+1: 0 nobody, 1 expandable, else the row
		for row := range 40 {
			e := trace.Event{Op: ops[rng.IntN(4)], Addr: 1 + rng.Uint64N(bytes-1)}
			e.Size = 1 + rng.Int64N(bytes-int64(e.Addr))
			r.Add(&e)
			owner := map[trace.Op]int{trace.OpSegmentAlloc: row + 2, trace.OpSegmentMap: 1}[e.Op]
			cut := map[int]bool{}
			for i := e.Addr; i < e.Addr+uint64(e.Size); i++ {
				cut[holder[i]] = true
				holder[i] = owner
			}
			for i := e.Addr + uint64(e.Size); i < bytes; i++ { // the rest of a cut segment becomes a segment of its own
				if h := holder[i]; h > 1 && cut[h] {
					holder[i] = h + 1000
				}
			}
			for range 20 {
				addr := 1 + rng.Uint64N(bytes-1)
				size := 1 + rng.Int64N(bytes-int64(addr))
				want := holder[addr] > 0
				for i := addr; i < addr+uint64(size); i++ {
					want = want && holder[i] == holder[addr]
				}
				if got := r.Hold(addr, size); got != want {
					t.Fatalf("%d bytes at %d: %v, want %v: %v", size, addr, got, want, r.all)
				}
			}
		}
	}
}

func TestTooManyRanges(t *testing.T) {
	var r Ranges
	for i := range uint64(maxSpans + 1) {
		if r.Add(&trace.Event{Op: trace.OpSegmentAlloc, Addr: 1 + 4*i, Size: 2}); r.Known() != (i < maxSpans) {
			t.Fatalf("%d ranges: known %v", i+1, r.Known())
		}
	}
}
