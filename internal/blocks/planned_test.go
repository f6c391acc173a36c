package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestPlannedKeepsLiveApart: a request whose place is still in use, because a free came later than planned, goes elsewhere.
func TestPlannedKeepsLiveApart(t *testing.T) {
	const kib = 1 << 10
	plan := []Placement{
		{Size: 4 * kib, Offset: 0}, {Size: 4 * kib, Offset: 4 * kib}, {Size: 4 * kib, Offset: 2 * kib}, {Size: 8 * kib, Offset: 0},
		{Size: 2 * kib, Offset: 8 * kib},
	}
	dev := sim.New(0, sim.H200())
	a, err := NewPlanned(dev, plan, []int64{16 * kib}, 512)
	if err != nil {
		t.Fatal(err)
	}
	base := a.bases[0]
	malloc := func(size int64) cuda.Ptr {
		t.Helper()
		p, err := a.Malloc(size, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	inArena := func(p cuda.Ptr) bool { return p >= base && p < base+16*kib }
	first, second := malloc(4*kib), malloc(4*kib)
	if first != base || second != base+4*kib {
		t.Errorf("placed at %#x and %#x of %#x", first, second, base)
	}
	third := malloc(4 * kib) // over both
	if inArena(third) {
		t.Errorf("%#x lies on what is live", third)
	}
	if err := a.Free(first); err != nil {
		t.Fatal(err)
	}
	if p := malloc(4 * kib); inArena(p) { // still over the second
		t.Errorf("%#x lies on what is live", p)
	}
	if err := a.Free(second); err != nil {
		t.Fatal(err)
	}
	if p := malloc(4 * kib); p != base+2*kib {
		t.Errorf("the plan goes on at %#x, want %#x", p, base+2*kib)
	}
	if s := a.Stats(); s.Allocated != 3*4*kib || s.Reserved != 16*kib+2<<20 {
		t.Errorf("account %+v", s)
	}
}
