package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestPlannedAgainstDefinition makes the requests of random plans, and others, and frees blocks at random. A request gets its place if it is the one
// that is expected and no block is in the way; otherwise the plan waits.
func TestPlannedAgainstDefinition(t *testing.T) {
	places, refused := 0, 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 73))
		arenas := []int64{16 << 10, 8 << 10}
		plan := make([]Placement, 300)
		for i := range plan {
			p := &plan[i]
			p.Size = 100 + 412*rng.Int64N(8)
			p.Arena = int32(rng.IntN(2))
			p.Offset = 512 * rng.Int64N(arenas[p.Arena]/512-7)
		}
		a, err := NewPlanned(sim.New(0, sim.CostTable{}), plan, arenas, 1)
		if err != nil {
			t.Fatal(err)
		}
		live := map[cuda.Ptr]int{} // the placement, -1 for none
		next := 0
		for next < len(plan) {
			for p, i := range live {
				if rng.IntN(4) > 0 {
					continue
				}
				if i >= 0 { // a plan keeps a place until the last stream is done with it
					if err := a.RecordStream(p, 3); err != nil {
						t.Fatal(err)
					}
				}
				if err := a.Free(p); err != nil {
					t.Fatal(err)
				}
				delete(live, p)
			}
			size := plan[next].Size
			if rng.IntN(5) == 0 {
				size++
			}
			p, err := a.Malloc(size, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			x := plan[next]
			vacant := size == x.Size
			for _, i := range live {
				vacant = vacant && (i < 0 || plan[i].Arena != x.Arena || plan[i].Offset >= x.Offset+x.Size || x.Offset >= plan[i].Offset+plan[i].Size)
			}
			if got := p == a.bases[x.Arena]+cuda.Ptr(x.Offset); got != vacant {
				t.Fatalf("seed %d: request %d of %d bytes is at its place: %v, want %v", seed, next, size, got, vacant)
			}
			live[p] = -1
			if vacant {
				live[p] = next
				next++
				places++
			} else {
				refused++
			}
		}
		for p := range live {
			if err := a.Free(p); err != nil {
				t.Fatal(err)
			}
		}
		if s := a.Stats(); s.Allocated != 0 {
			t.Errorf("%d bytes are left", s.Allocated)
		}
	}
	if refused < places/4 {
		t.Errorf("%d requests got their places, %d did not: the test is too easy", places, refused)
	}
}

// TestPlannedHoldings: a block at the end of an arena has no more bytes than are left of it.
func TestPlannedHoldings(t *testing.T) {
	const mib = 1 << 20
	a, err := NewPlanned(sim.New(0, sim.CostTable{}), []Placement{{Size: 100}, {Size: 100, Offset: 2*mib - 100}}, []int64{2 * mib}, 512)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.Malloc(100, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	h := a.Holdings()[0]
	for _, u := range h.Uses {
		if want := map[cuda.Ptr]int64{h.Address: 512, h.Address + 2*mib - 100: 100}[u.Block]; u.Bytes != want {
			t.Errorf("%d bytes at %#x, want %d", u.Bytes, u.Block, want)
		}
	}
}
