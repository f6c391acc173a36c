package blocks

import (
	"testing"

	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestSegmentSize: PyTorch takes 2 MiB for blocks of up to 1 MiB, 20 MiB for those below 10 MiB, and larger ones in whole units of 2 MiB.
func TestSegmentSize(t *testing.T) {
	a, err := NewTorch(sim.New(0, sim.H200()), allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	for size, want := range map[int64]int64{
		512: 2 * mib, mib: 2 * mib,
		mib + 512: 20 * mib, 10*mib - 512: 20 * mib,
		10 * mib: 10 * mib, 10*mib + 512: 12 * mib, 12 * mib: 12 * mib,
	} {
		if got := a.segmentSize(size); got != want {
			t.Errorf("a segment of %d bytes for a block of %d, wanted %d", got, size, want)
		}
	}
}
