package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestPiecesGoHome: once a block that was stitched is free, its memory is offered beside that of its neighbours again.
func TestPiecesGoHome(t *testing.T) {
	dev := sim.New(0, sim.H200())
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	malloc := func(size int64) cuda.Ptr {
		p, err := a.Malloc(size, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	free := func(all ...cuda.Ptr) {
		for _, p := range all {
			if err := a.Free(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	const size = 8 << 20
	var all []cuda.Ptr
	for range 16 {
		all = append(all, malloc(size))
	}
	for i := 0; i < len(all); i += 2 {
		free(all[i])
	}
	stitched := malloc(8 * size)
	if a.Stitches() != 1 || a.Stats().Reserved != 16*size {
		t.Fatalf("%d stitches, %d bytes reserved", a.Stitches(), a.Stats().Reserved)
	}
	free(stitched)
	for i := 1; i < len(all); i += 2 {
		free(all[i])
	}
	calls := dev.MemoryCalls()
	if p := malloc(15 * size); p != all[0] || dev.MemoryCalls() != calls {
		t.Errorf("the memory is at %#x after %d calls, not at %#x", p, dev.MemoryCalls()-calls, all[0])
	}
}
