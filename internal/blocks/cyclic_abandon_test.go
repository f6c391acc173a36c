package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestAbandon gives a plan up in the middle of an iteration, and checks that blocks stay what they are, and that all memory is free for what
// comes once they are freed.
func TestAbandon(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 77))
		dev := sim.New(0, sim.H200())
		a, err := NewCyclic(dev, PlannedStitchConf())
		if err != nil {
			t.Fatal(err)
		}
		cycle := randomCycle(rng, 40, 2)
		cycle.Proven = true
		for range 3 {
			if err := a.Adopt(cycle); err != nil {
				t.Fatal(err)
			}
			live := map[cuda.Ptr]int64{}
			for k := range len(cycle.Steps) + rng.IntN(len(cycle.Steps)) {
				s := &cycle.Steps[k%len(cycle.Steps)]
				p, err := a.Malloc(s.Size, s.Stream, 0)
				if err != nil {
					t.Fatal(err)
				}
				live[p] = s.Size
			}
			before := a.Stats()
			if err := a.Abandon(); err != nil {
				t.Fatal(err)
			}
			after := a.Stats()
			if after.Allocated != before.Allocated || after.Reserved != before.Reserved || after.Allocated != usedIn(a) {
				t.Errorf("seed %d: %+v before, %+v after, with %d bytes in blocks", seed, before, after, usedIn(a))
			}
			for p := range live {
				if err := a.Free(p); err != nil {
					t.Fatal(err)
				}
			}
			if n := a.Stats().Allocated; n != 0 {
				t.Errorf("seed %d: %d bytes are in use after all frees", seed, n)
			}
		}
		if err := a.Empty(); err != nil {
			t.Fatal(err)
		}
		if n := a.Stats().Reserved; n != 0 {
			t.Errorf("seed %d: %d bytes stay", seed, n)
		}
	}
}

// usedIn returns the bytes of blocks in use.
func usedIn(a *Cyclic) (n int64) {
	for _, s := range a.Segments() {
		for _, b := range s.Blocks {
			if b.State == BlockUsed {
				n += b.Size
			}
		}
	}
	return n
}

// TestMark records two iterations and expects the first, with how long its requests last.
func TestMark(t *testing.T) {
	dev := sim.New(0, sim.CostTable{})
	s, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	a := OverStitch(s)
	const size = 4 << 20
	kept := mustMalloc(t, a, 3*size, 0) // until after the first request of the next iteration
	var got []Request
	for i := range 3 {
		if got = a.Mark(1 << 10); got != nil {
			break
		}
		if !a.Recording() || s.Keepable() {
			t.Fatalf("mark %d: nothing is recorded", i)
		}
		mustMalloc(t, a, size+int64(i)*2<<20, 0) // for good
		mustMalloc(t, a, 1000, 0)                // beside the plan
		mustFree(t, a, kept)
		short := mustMalloc(t, a, 2*size, 0)
		mustFree(t, a, short)
		kept = mustMalloc(t, a, 3*size, 0)
	}
	want := []Request{{Size: size}, {Size: 2 * size, Lasts: 1}, {Size: 3 * size, Lasts: 2}}
	if len(got) != len(want) || a.Recording() || !s.Keepable() {
		t.Fatalf("got %+v, want %+v; recording %v", got, want, a.Recording())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// followed returns an allocator on a device of some times 64 MiB that has followed a plan of 8 such blocks at a time, and their addresses.
func followed(t *testing.T, room int64) (*Cyclic, []cuda.Ptr) {
	t.Helper()
	s, err := NewStitch(sim.New(room*blockOfPlan, sim.CostTable{}), DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	a := OverStitch(s)
	cycle := &Cycle{Proven: true, Arenas: []int64{8 * blockOfPlan}}
	for i := range 16 {
		cycle.Steps = append(cycle.Steps, Step{Size: blockOfPlan - int64(i)*512, Offset: int64(i%8) * blockOfPlan, Lasts: 8})
	}
	if err := a.Adopt(cycle); err != nil {
		t.Fatal(err)
	}
	var ptrs []cuda.Ptr
	for i := range 32 {
		if i >= 8 {
			mustFree(t, a, ptrs[i-8])
		}
		ptrs = append(ptrs, mustMalloc(t, a, cycle.Steps[i%16].Size, 0))
	}
	if by, beside := a.Followed(); by != 16 || beside != 0 {
		t.Fatalf("%d requests followed the plan, %d did not", by, beside)
	}
	return a, ptrs
}

const blockOfPlan = 64 << 20

// TestPlanYields fills the device but for memory in parts of a plan's arena, and expects a request for more than any part, a small one and one of
// a pool to be served in spite of the plan, unless they are to fail at once.
func TestPlanYields(t *testing.T) {
	for _, c := range []struct {
		size int64
		pool Pool
	}{{3 * blockOfPlan, 0}, {1000, 0}, {3 << 20, 7}} {
		a, ptrs := followed(t, 10)
		for i := 24; i < 32; i += 2 {
			mustFree(t, a, ptrs[i])
		}
		a.SetHasty(true)
		for err := error(nil); err == nil; {
			_, err = a.Stitch.Malloc(2<<20, 0, 0)
		}
		for err := error(nil); err == nil; {
			_, err = a.Malloc(c.size, 0, c.pool)
		}
		if planned, _ := a.Planned(); !planned {
			t.Fatalf("%+v: the plan was abandoned for what was to fail", c)
		}
		a.SetHasty(false)
		if _, err := a.Malloc(c.size, 0, c.pool); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if planned, _ := a.Planned(); planned {
			t.Errorf("%+v: the plan is still followed", c)
		}
	}
}

// TestAskedAgain has a request fail whose place is taken, frees that, and expects the next attempt to get it, and all later ones theirs.
func TestAskedAgain(t *testing.T) {
	a, ptrs := followed(t, 10)
	a.SetHasty(true)
	for err := error(nil); err == nil; {
		_, err = a.Stitch.Malloc(2<<20, 0, 0)
	}
	for i := range 16 {
		size := a.cycle.Steps[i].Size
		if i == 4 {
			for range 2 {
				if _, err := a.Malloc(size, 0, 0); err == nil {
					t.Fatal("there is no room")
				}
			}
		}
		mustFree(t, a, ptrs[24+i])
		ptrs = append(ptrs, mustMalloc(t, a, size, 0))
		if ptrs[32+i] != ptrs[16+i] {
			t.Errorf("request %d is at %#x, before at %#x", i, ptrs[32+i], ptrs[16+i])
		}
	}
	if by, beside := a.Followed(); by != 32 || beside != 0 {
		t.Errorf("%d requests followed the plan, %d did not", by, beside)
	}
}

// TestGuest has a request find its place taken, and expects it at one that is needed right after it if it does not last as long, and elsewhere
// otherwise.
func TestGuest(t *testing.T) {
	for lasts, want := range map[int32]int{1: 1, 2: 0, 8: 0} {
		a, ptrs := followed(t, 0)
		a.cycle.Steps[0].Lasts = lasts
		mustFree(t, a, ptrs[25]) // the place of step 1, while that of step 0 is in use
		p := mustMalloc(t, a, a.cycle.Steps[0].Size, 0)
		if guests := len(a.guests.steps); guests != want {
			t.Errorf("a request that lasts %d steps: %d guests, want %d", lasts, guests, want)
		}
		mustFree(t, a, p)
		if q := mustMalloc(t, a, a.cycle.Steps[1].Size, 0); q != ptrs[25] {
			t.Errorf("after a request that lasts %d steps the next one is at %#x, not %#x", lasts, q, ptrs[25])
		}
	}
}

// TestMarkResumes follows a plan whose requests are all of one size, which nothing but marks tells from each other.
func TestMarkResumes(t *testing.T) {
	s, err := NewStitch(sim.New(0, sim.CostTable{}), DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	a := OverStitch(s)
	cycle := &Cycle{Proven: true, Arenas: []int64{4 * blockOfPlan}}
	for i := range 12 {
		cycle.Steps = append(cycle.Steps, Step{Size: blockOfPlan, Offset: int64(i%4) * blockOfPlan, Lasts: int32(1 + i%3)})
	}
	if err := a.Adopt(cycle); err != nil {
		t.Fatal(err)
	}
	for turn := range 4 {
		if a.Mark(1<<10) != nil {
			t.Fatal("a plan is there already")
		}
		left := turn % 3 // requests that do not come
		var ptrs []cuda.Ptr
		for i := range len(cycle.Steps) - left {
			ptrs = append(ptrs, mustMalloc(t, a, blockOfPlan, 0))
			if want := a.regions[a.arenas[0].region].ptr + cuda.Ptr(cycle.Steps[i].Offset); ptrs[i] != want {
				t.Errorf("turn %d: request %d is at %#x, want %#x", turn, i, ptrs[i], want)
			}
			for k := range ptrs {
				if k+int(cycle.Steps[k].Lasts) == i+1 || i == len(cycle.Steps)-left-1 && k+int(cycle.Steps[k].Lasts) > i+1 {
					mustFree(t, a, ptrs[k])
				}
			}
		}
	}
}

// TestPlanWithoutMemory adopts and abandons plans on a full device, and expects no addresses to be left.
func TestPlanWithoutMemory(t *testing.T) {
	dev := sim.New(1<<30, sim.CostTable{})
	s, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	a := OverStitch(s)
	a.SetHasty(true)
	for err := error(nil); err == nil; {
		_, err = a.Malloc(2<<20, 0, 0)
	}
	before := dev.Calls(sim.AddressReserve) - dev.Calls(sim.AddressFree)
	for range 3 {
		cycle := &Cycle{Proven: true, Arenas: []int64{blockOfPlan}, Steps: []Step{{Size: blockOfPlan, Lasts: 1}}}
		if err := a.Adopt(cycle); err != nil {
			t.Fatal(err)
		}
		a.next = 0
		if _, err := a.Malloc(blockOfPlan, 0, 0); err == nil {
			t.Fatal("the device is full")
		}
		if err := a.Abandon(); err != nil {
			t.Fatal(err)
		}
	}
	if now := dev.Calls(sim.AddressReserve) - dev.Calls(sim.AddressFree); now != before {
		t.Errorf("%d ranges of addresses before, %d after", before, now)
	}
}

func mustFree(t *testing.T, a Allocator, p cuda.Ptr) {
	t.Helper()
	if err := a.Free(p); err != nil {
		t.Fatal(err)
	}
}
