package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// pooled is an allocator with a live, a free and a lent block in a private pool, and a free one in the default pool.
func pooled(t *testing.T, expandable bool) (a *Torch, dev *sim.Device, live cuda.Ptr, lent []cuda.Event) {
	t.Helper()
	dev = sim.New(0, sim.H200())
	conf := allocconf.Default()
	conf.Expandable = expandable
	a, err := NewTorch(dev, conf)
	if err != nil {
		t.Fatal(err)
	}
	malloc := func(size int64, pool Pool) cuda.Ptr {
		p, err := a.Malloc(size, 0, pool)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	free := func(p cuda.Ptr) {
		if err := a.Free(p); err != nil {
			t.Fatal(err)
		}
	}
	free(malloc(30<<20, 0))
	live = malloc(1000, 5)
	free(malloc(40<<20, 5))
	p := malloc(50<<20, 5)
	if err := a.RecordStream(p, 7); err != nil {
		t.Fatal(err)
	}
	lent = dev.Hold(func() { free(p) })
	return a, dev, live, lent
}

// TestEmptyPool releases a private pool and nothing else.
func TestEmptyPool(t *testing.T) {
	for name, expandable := range map[string]bool{"torch": false, "expandable": true} {
		a, _, live, _ := pooled(t, expandable)
		before := a.Stats().Reserved
		if none, err := a.EmptyPool(9); !none || err != nil {
			t.Errorf("%s: a pool that never was: %v, %v", name, none, err)
		}
		if none, err := a.EmptyPool(5); none || err != nil {
			t.Errorf("%s: a pool with a live block: %v, %v", name, none, err)
		}
		if err := a.Free(live); err != nil {
			t.Fatal(err)
		}
		if none, err := a.EmptyPool(5); !none || err != nil {
			t.Errorf("%s: a pool with none: %v, %v", name, none, err)
		}
		if got := a.Stats().Reserved; got == 0 || got >= before-(40<<20) {
			t.Errorf("%s: %d bytes are reserved, of %d", name, got, before)
		}
		if err := a.Empty(); err != nil || a.Stats().Reserved != 0 {
			t.Errorf("%s: %v, %d bytes are left", name, err, a.Stats().Reserved)
		}
		if p, err := a.Malloc(1000, 0, 5); p == 0 || err != nil {
			t.Errorf("%s: the pool used again: %v", name, err)
		}
	}
}

// TestSegments checks each state of a block, and that the blocks cover what is reserved.
func TestSegments(t *testing.T) {
	for name, expandable := range map[string]bool{"torch": false, "expandable": true} {
		a, dev, live, lent := pooled(t, expandable)
		if small, large := a.Pending(); small != 0 || large != 50<<20 {
			t.Errorf("%s: %d and %d bytes wait for a stream", name, small, large)
		}
		total, states, pools := int64(0), map[BlockState]int64{}, map[Pool]bool{}
		for _, s := range a.Segments() {
			total += s.Size
			pools[s.Pool] = true
			at := s.Address
			for _, b := range s.Blocks {
				if b.Address != at {
					t.Errorf("%s: a block at %#x, want %#x", name, b.Address, at)
				}
				at += cuda.Ptr(b.Size)
				states[b.State] += b.Size
				if (b.Address == live) != (b.State == BlockUsed) || s.Expandable != expandable {
					t.Errorf("%s: block %+v in %+v", name, b, s)
				}
			}
			if at != s.Address+cuda.Ptr(s.Size) {
				t.Errorf("%s: blocks end at %#x in %+v", name, at, s)
			}
		}
		if total != a.Stats().Reserved || states[BlockUsed] != 1024 || states[BlockPending] != 50<<20 || len(pools) != 2 || !pools[5] {
			t.Errorf("%s: %d bytes, states %v, pools %v", name, total, states, pools)
		}
		dev.Complete(lent)
		if _, err := a.Malloc(1000, 0, 0); err != nil {
			t.Fatal(err)
		}
		if small, large := a.Pending(); small != 0 || large != 0 {
			t.Errorf("%s: afterwards %d and %d bytes wait for a stream", name, small, large)
		}
	}
}

// TestMallocCached serves what a private pool has free, and takes no memory for it.
func TestMallocCached(t *testing.T) {
	a, dev, _, _ := pooled(t, false)
	before := dev.Used()
	for _, c := range []struct {
		size   int64
		pool   Pool
		served bool
	}{
		{0, 5, false}, {-1, 5, false}, {MaxSize + 1, 5, false}, {60 << 20, 5, false}, {40 << 20, 9, false}, {40 << 20, 5, true}, {40 << 20, 5, false},
	} {
		if p := a.MallocCached(c.size, 0, c.pool); (p != 0) != c.served {
			t.Errorf("%d bytes of pool %d: %#x", c.size, c.pool, p)
		}
	}
	if dev.Used() != before {
		t.Errorf("%d bytes are taken, %d before", dev.Used(), before)
	}
}

// TestEmptyPoolInUse: a pool has memory as long as a block of it is in use, also where nothing else of it is left. Other pools do not matter.
func TestEmptyPoolInUse(t *testing.T) {
	for _, expandable := range []bool{false, true} {
		conf := allocconf.Default()
		conf.Expandable = expandable
		a, err := NewTorch(sim.New(0, sim.CostTable{}), conf)
		if err != nil {
			t.Fatal(err)
		}
		var p [3]cuda.Ptr
		for i, pool := range []Pool{0, 5, 6} {
			if p[i], err = a.Malloc(20<<20, 0, pool); err != nil {
				t.Fatal(err)
			}
		}
		if none, err := a.EmptyPool(5); none || err != nil {
			t.Errorf("expandable %v: nothing is left of a pool with a block in use; %v", expandable, err)
		}
		if err := a.Free(p[1]); err != nil {
			t.Fatal(err)
		}
		if none, err := a.EmptyPool(5); !none || err != nil {
			t.Errorf("expandable %v: a pool is left whose block was freed; %v", expandable, err)
		}
	}
}
