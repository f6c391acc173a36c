package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestPreferExpandable: of the free blocks of an expandable segment that are large enough, the one at the end of the mapped pages counts with all
// that it can grow to. So a block between others is taken before it, the smallest first, and of equals that at the lower address.
func TestPreferExpandable(t *testing.T) {
	conf := allocconf.Default()
	conf.Expandable = true
	a, err := NewTorch(sim.New(0, sim.H200()), conf)
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	sizes := []int64{30 * mib, 40 * mib, 30 * mib, 2 * mib, 18 * mib} // a whole number of pages of 20 MiB
	ptrs := make([]cuda.Ptr, len(sizes))
	for i, n := range sizes {
		if ptrs[i], err = a.Malloc(n, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 2, 4} {
		if err := a.Free(ptrs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{0, 2, 4} {
		p, err := a.Malloc(16*mib, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p != ptrs[want] {
			t.Errorf("16 MiB at %d MiB of the segment, wanted in the free block of %d MiB", (p-ptrs[0])/mib, sizes[want]/mib)
		}
		// The rest of the block is taken, too.
		if rest := sizes[want] - 16*mib; want != 4 {
			if _, err := a.Malloc(rest, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestExpandablePages: an expandable segment grows by pages of 2 MiB for small requests and of 20 MiB for others, and a block of it is split
// from 512 bytes of rest on.
func TestExpandablePages(t *testing.T) {
	conf := allocconf.Default()
	conf.Expandable = true
	for _, c := range []struct{ size, taken, block int64 }{
		{512, 2 << 20, 512},
		{1 << 20, 2 << 20, 1 << 20},
		{1<<20 + 512, 20 << 20, 1<<20 + 512},
		{20<<20 - 512, 20 << 20, 20<<20 - 512},
		{20<<20 - 511, 20 << 20, 20 << 20},
		{20<<20 + 512, 40 << 20, 20<<20 + 512},
	} {
		a, err := NewTorch(sim.New(0, sim.H200()), conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Malloc(c.size, 0, 0); err != nil {
			t.Fatal(err)
		}
		if s := a.Stats(); s.Reserved != c.taken || s.Allocated != c.block {
			t.Errorf("%d bytes: a block of %d and %d taken, wanted %d and %d", c.size, s.Allocated, s.Reserved, c.block, c.taken)
		}
	}
}
