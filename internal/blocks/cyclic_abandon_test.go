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

// TestPlanYields fills the device but for memory in parts of a plan's arena, and expects a request for more than any part to be served in
// spite of the plan, unless it is to fail at once.
func TestPlanYields(t *testing.T) {
	const size = 64 << 20
	dev := sim.New(10*size, sim.CostTable{})
	a, err := NewCyclic(dev, PlannedStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	cycle := &Cycle{Proven: true, Arenas: []int64{8 * size}}
	for i := range 16 {
		cycle.Steps = append(cycle.Steps, Step{Size: size - int64(i)*512, Offset: int64(i%8) * size, Lasts: 8})
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
	if followed, _ := a.Followed(); followed != 16 {
		t.Fatalf("%d requests followed the plan", followed)
	}
	for i := 24; i < 32; i += 2 {
		mustFree(t, a, ptrs[i])
	}
	a.SetHasty(true)
	if _, err := a.Malloc(5*size, 0, 0); err == nil {
		t.Fatal("there is no such part of the arena, nor beside it")
	}
	a.SetHasty(false)
	mustMalloc(t, a, 5*size, 0)
	if a.cycle != nil {
		t.Error("the plan is still followed")
	}
}

func mustFree(t *testing.T, a Allocator, p cuda.Ptr) {
	t.Helper()
	if err := a.Free(p); err != nil {
		t.Fatal(err)
	}
}
