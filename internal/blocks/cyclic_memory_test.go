package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// idlePieces returns a Cyclic with idle pieces of these sizes in MiB on stream 0, and as much memory in use beside them.
func idlePieces(t *testing.T, dev cuda.Device, sizes ...int64) *Cyclic {
	t.Helper()
	c, err := NewCyclic(dev, StitchConf{PieceMin: 2 << 20, PieceMax: 16 << 20, Pieces: 1 << 20, Parts: 1, Aliases: 4})
	if err != nil {
		t.Fatal(err)
	}
	h := c.heapOf(0)
	for _, size := range sizes {
		if _, err := c.create(h, size<<20); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestSpareFor: an arena gets the largest idle piece that is not larger than what it lacks, else a new one if the plan or what was once in use
// allows it, else a larger idle one.
func TestSpareFor(t *testing.T) {
	for _, c := range []struct {
		about        string
		idle         []int64 // MiB
		lacks        int64
		target, peak int64 // MiB
		capacity     int64
		want         int64 // 0 for none
		fresh        bool
	}{
		{"the one of its size", []int64{2, 4, 8}, 4, 100, 0, 0, 4, false},
		{"the largest that is smaller", []int64{2, 4, 8}, 6, 100, 0, 0, 4, false},
		{"a new one before a larger one", []int64{8}, 4, 12, 0, 0, 4, true},
		{"of the size of new pieces", nil, 30, 16, 0, 0, 16, true},
		{"as much as the plan needs", []int64{8}, 4, 11, 0, 0, 8, false},
		{"or as was in use", []int64{8}, 4, 0, 12, 0, 4, true},
		{"and no more", []int64{8}, 4, 0, 11, 0, 8, false},
		{"a larger one where the device is full", []int64{8}, 4, 100, 0, 8, 8, false},
		{"none", nil, 4, 100, 0, 2, 0, false},
		{"none that is allowed", nil, 4, 3, 3, 0, 0, false},
	} {
		t.Run(c.about, func(t *testing.T) {
			a := idlePieces(t, sim.New(c.capacity<<20, sim.CostTable{}), c.idle...)
			a.target, a.stats.PeakAllocated = c.target<<20, c.peak<<20
			id, err := a.spareFor(a.heapOf(0), c.lacks<<20)
			if err != nil {
				t.Fatal(err)
			}
			if id == none {
				if c.want != 0 {
					t.Errorf("no piece, want one of %d MiB", c.want)
				}
				return
			}
			if got, fresh := a.pieces[id].size>>20, int(id) >= len(c.idle); got != c.want || fresh != c.fresh {
				t.Errorf("a piece of %d MiB, new: %v, want %d and %v", got, fresh, c.want, c.fresh)
			}
		})
	}
}

// TestBack: an arena gets no more pieces than a place needs, and those that its addresses have room for.
func TestBack(t *testing.T) {
	for _, c := range []struct {
		about     string
		addresses int64 // MiB, 0 for any
		idle      []int64
		size      int64
		ends      []int64 // MiB
		backed    []int64 // after each
	}{
		{"as far as it is needed", 0, []int64{2, 2, 2, 2, 2}, 10, []int64{1, 2, 3, 7, 8}, []int64{2, 2, 4, 8, 8}},
		{"the largest first", 0, []int64{2, 4, 8}, 10, []int64{1, 9}, []int64{8, 10}},
		{"up to the end of its addresses", 10, []int64{8, 2}, 10, []int64{9}, []int64{10}},
		{"not beyond", 10, []int64{8, 4}, 10, []int64{9}, []int64{8}},
	} {
		t.Run(c.about, func(t *testing.T) {
			dev := &cramped{Device: sim.New(0, sim.CostTable{}), left: 1 << 50}
			if c.addresses > 0 {
				dev.left = c.addresses << 20
			}
			a := idlePieces(t, dev, c.idle...)
			x := arena{size: c.size << 20, region: none}
			for i, end := range c.ends {
				ok, err := a.back(&x, a.heapOf(0), end<<20)
				if err != nil || ok != (c.backed[i] >= end) || x.backed != c.backed[i]<<20 {
					t.Errorf("up to %d MiB: %v, %v, %d MiB are backed, want %d", end, ok, err, x.backed>>20, c.backed[i])
				}
			}
		})
	}
}

// TestCyclicViews follows a plan and compares what is held and shown with the blocks that are handed out and pending.
func TestCyclicViews(t *testing.T) {
	var requests []Request
	for i := range int64(20) {
		requests = append(requests, Request{Size: (2+i%5)<<20 + i<<9, Lasts: int32(1 + i%4)})
	}
	dev := sim.New(0, sim.CostTable{})
	c, err := NewCyclic(dev, PlannedStitchConf())
	if err == nil {
		err = c.Adopt(firstFit(requests))
	}
	if err != nil {
		t.Fatal(err)
	}
	v := &viewing{t: t, dev: dev, a: c}
	due := make([][]cuda.Ptr, 200)
	for i := range 100 {
		for _, p := range due[i] {
			for k := range v.blocks {
				if v.blocks[k].ptr == p && !v.blocks[k].pending {
					v.free(k, i%7 == 0)
					break
				}
			}
		}
		v.malloc(requests[i%20].Size)
		last := v.blocks[len(v.blocks)-1]
		due[i+int(requests[i%20].Lasts)] = append(due[i+int(requests[i%20].Lasts)], last.ptr)
		v.checkPlan(c)
		if i%13 == 12 {
			v.dev.Complete(v.events)
			v.events = nil
			v.blocks = v.blocks[:copy(v.blocks, v.settled(c))]
		}
	}
	if followed, _ := c.Followed(); followed < 50 {
		t.Errorf("%d requests by plan: the test is too easy", followed)
	}
}

// checkPlan expects that the blocks of the plan are shown and held, and that its memory is held as planned.
func (v *viewing) checkPlan(c *Cyclic) {
	v.t.Helper()
	v.checkHeld()
	shown := map[cuda.Ptr]BlockView{}
	for _, s := range c.Segments() {
		for _, b := range s.Blocks {
			shown[b.Address] = b
		}
	}
	for _, b := range v.blocks {
		want := BlockView{b.ptr, b.size, BlockUsed}
		if b.pending {
			want.State = BlockPending
		}
		if _, ok := c.byPtr.Get(b.ptr); ok && shown[b.ptr] != want {
			v.t.Fatalf("shown as %+v, want %+v", shown[b.ptr], want)
		}
	}
	backed := int64(0)
	for _, a := range c.arenas {
		backed += a.backed
	}
	for _, h := range c.Holdings() {
		if h.Planned {
			backed -= h.Size
		}
	}
	if backed != 0 {
		v.t.Fatalf("the holdings of the plan's memory are off by %d bytes", backed)
	}
}

// settled returns the blocks that are not pending once the allocator has looked at the events.
func (v *viewing) settled(c *Cyclic) (live []viewed) {
	if err := c.lender.process(); err != nil {
		v.t.Fatal(err)
	}
	if err := c.Stitch.lender.process(); err != nil {
		v.t.Fatal(err)
	}
	for _, b := range v.blocks {
		if !b.pending {
			live = append(live, b)
		}
	}
	return live
}

// TestRoom counts what is free, idle pieces, blocks that nobody uses, and what an iteration frees in the next one.
func TestRoom(t *testing.T) {
	c := idlePieces(t, sim.New(40<<20, sim.CostTable{}), 2, 4, 8)
	p, err := c.Malloc(4<<20, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Free(p); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Malloc(8<<20, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.create(c.heapOf(7), 16<<20); err != nil { // no arena of these requests can have it
		t.Fatal(err)
	}
	iteration := []Request{{Size: 3 << 20, Lasts: 1}, {Size: 8 << 20, Lasts: 2}, {Size: 1 << 20, Lasts: 1}, {Size: 5 << 20, Lasts: 2}}
	if got, want := c.Room(iteration), int64(40-8-16+5)<<20; got != want {
		t.Errorf("room for %d bytes, want %d", got, want)
	}
}
