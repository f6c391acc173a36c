package blocks

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// plainPlanned says which requests get their places: the one that is expected, if no block is in the way. Otherwise the plan waits.
type plainPlanned struct {
	plan            []Placement
	next            int
	live            map[cuda.Ptr]int // by address, the placement, -1 for none
	places, refused int
}

// vacant reports whether a request gets the next place.
func (m *plainPlanned) vacant(size int64) bool {
	x := m.plan[m.next]
	free := size == x.Size
	for _, i := range m.live {
		if i >= 0 {
			o := m.plan[i]
			free = free && (o.Arena != x.Arena || o.Offset >= x.Offset+x.Size || x.Offset >= o.Offset+o.Size)
		}
	}
	return free
}

// malloc makes a request of about the size that is expected.
func (m *plainPlanned) malloc(t *testing.T, a *Planned, size int64) {
	p, err := a.Malloc(size, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, vacant := m.plan[m.next], m.vacant(size)
	if got := p == a.bases[x.Arena]+cuda.Ptr(x.Offset); got != vacant {
		t.Fatalf("request %d of %d bytes is at its place: %v, want %v", m.next, size, got, vacant)
	}
	if vacant {
		m.live[p] = m.next
		m.next++
		m.places++
	} else {
		m.live[p] = -1
		m.refused++
	}
}

// free frees a block that is at its place or elsewhere. A plan keeps a place until the last stream is done with it.
func (m *plainPlanned) free(t *testing.T, a *Planned, p cuda.Ptr) {
	if m.live[p] >= 0 {
		if err := a.RecordStream(p, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Free(p); err != nil {
		t.Fatal(err)
	}
	delete(m.live, p)
}

// TestPlannedAgainstDefinition makes the requests of random plans, and others, and frees blocks at random.
func TestPlannedAgainstDefinition(t *testing.T) {
	places, refused := 0, 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 73))
		arenas := []int64{16 << 10, 8 << 10}
		m := &plainPlanned{plan: make([]Placement, 300), live: map[cuda.Ptr]int{}}
		for i := range m.plan {
			p := &m.plan[i]
			p.Size = 100 + 412*rng.Int64N(8)
			p.Arena = int32(rng.IntN(2))
			p.Offset = 512 * rng.Int64N(arenas[p.Arena]/512-7)
		}
		a, err := NewPlanned(sim.New(0, sim.CostTable{}), m.plan, arenas, 1)
		if err != nil {
			t.Fatal(err)
		}
		for m.next < len(m.plan) {
			for _, p := range slices.Sorted(maps.Keys(m.live)) {
				if rng.IntN(4) == 0 {
					m.free(t, a, p)
				}
			}
			m.malloc(t, a, m.plan[m.next].Size+rng.Int64N(5)/4)
		}
		for p := range m.live {
			m.free(t, a, p)
		}
		if s := a.Stats(); s.Allocated != 0 {
			t.Errorf("%d bytes are left", s.Allocated)
		}
		places, refused = places+m.places, refused+m.refused
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
