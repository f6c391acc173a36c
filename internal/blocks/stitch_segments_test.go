package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestStitchSegments checks that a snapshot shows all memory once, and every block.
func TestStitchSegments(t *testing.T) {
	for seed := range uint64(4) {
		dev := sim.New(700<<20, sim.H200())
		a, err := NewStitch(dev, DefaultStitchConf())
		if err != nil {
			t.Fatal(err)
		}
		h := newHarness(t, rand.New(rand.NewPCG(seed, 1)), dev, a)
		h.crosses = true
		for i := range 2000 {
			h.step()
			if i%100 == 0 {
				h.checkSegments(a.Segments())
			}
		}
	}
}

func (h *harness) checkSegments(segments []SegmentView) {
	total, used := int64(0), int64(0)
	var last cuda.Ptr
	for _, s := range segments {
		if s.Address < last {
			h.t.Fatalf("segment at %#x overlaps the one before", s.Address)
		}
		last = s.Address + cuda.Ptr(s.Size)
		total += s.Size
		at := s.Address
		for _, b := range s.Blocks {
			if b.Address != at || b.Size <= 0 {
				h.t.Fatalf("block of %d bytes at %#x, expected at %#x", b.Size, b.Address, at)
			}
			at += cuda.Ptr(b.Size)
			if b.State == BlockUsed {
				used += b.Size
			}
		}
		if at != last {
			h.t.Fatalf("blocks of the segment at %#x end at %#x, not %#x", s.Address, at, last)
		}
	}
	if s := h.a.Stats(); total != s.Reserved || used < s.Allocated {
		h.t.Fatalf("%d bytes in segments, %d in use, expected %d and at least %d", total, used, s.Reserved, s.Allocated)
	}
}
