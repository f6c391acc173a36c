package blocks

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// recorder is a device that records the segments taken from it.
type recorder struct {
	*sim.Device
	taken []sim.Range
}

func (r *recorder) MemAlloc(size int64) (cuda.Ptr, error) {
	p, err := r.Device.MemAlloc(size)
	r.taken = append(r.taken, sim.Range{Addr: p, Size: size})
	return p, err
}

// layout returns what t holds, as a recording would know it: asked tells the requested size of a live block.
func layout(t *Torch, asked map[cuda.Ptr]int64) []Segment {
	var all []Segment
	free := map[int32]bool{}
	for _, i := range t.store.unused {
		free[i] = true
	}
	for i := range t.store.blocks {
		b := t.store.at(int32(i))
		if free[int32(i)] || !b.mapped || b.prev != none && t.store.at(b.prev).mapped {
			continue
		}
		s := Segment{Addr: uint64(b.ptr), Stream: b.stream, Expandable: b.segment != none}
		for j := int32(i); j != none && t.store.at(j).mapped; j = t.store.at(j).next {
			n := t.store.at(j)
			s.Size += n.size
			if n.used {
				s.Live = append(s.Live, Held{Addr: uint64(n.ptr), Size: asked[n.ptr], Block: n.size})
			}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// TestRestoreContinues stops an allocator midway, restores another one from what a recording would know, and expects both to continue
// alike.
func TestRestoreContinues(t *testing.T) {
	for _, settings := range []string{"", "roundup_power2_divisions:4", "expandable_segments:True"} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", settings, seed), func(t *testing.T) {
				conf, err := allocconf.Parse(settings)
				if err != nil {
					t.Fatal(err)
				}
				testRestore(t, conf, rand.New(rand.NewPCG(seed, 9)))
			})
		}
	}
}

func testRestore(t *testing.T, conf allocconf.Conf, rng *rand.Rand) {
	first := &recorder{Device: sim.New(0, sim.CostTable{})}
	a, err := NewTorch(first, conf)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[cuda.Ptr]int64{}
	live := []cuda.Ptr{}
	for range 400 {
		live = churn(t, rng, a, live, asked)
	}
	segments := layout(a, asked)
	second := sim.New(0, sim.CostTable{})
	var addresses []sim.Range
	for _, s := range segments {
		addresses = append(addresses, sim.Range{Addr: cuda.Ptr(s.Addr), Size: s.Size})
	}
	known := len(first.taken)

	// The second allocator learns the addresses of later segments as the first one gets them.
	b, err := NewTorch(&follower{Device: second, leader: first, next: known, initial: addresses}, conf)
	if err != nil {
		t.Fatal(err)
	}
	ptrs, err := b.Restore(segments)
	if err != nil {
		t.Fatal(err)
	}
	twin := map[cuda.Ptr]cuda.Ptr{}
	i := 0
	for _, s := range segments {
		for _, h := range s.Live {
			twin[cuda.Ptr(h.Addr)] = ptrs[i]
			i++
		}
	}
	if got, want := b.Stats().Reserved, a.Stats().Reserved; got != want {
		t.Fatalf("restored %d bytes reserved, want %d", got, want)
	}
	if got, want := b.Stats().Allocated, a.Stats().Allocated; got != want {
		t.Fatalf("restored %d bytes allocated, want %d", got, want)
	}
	for step := range 400 {
		live = both(t, rng, step, a, b, live, asked, twin, conf.Expandable)
	}
}

// follower hands out the addresses that another device handed out.
type follower struct {
	*sim.Device
	leader  *recorder
	next    int
	initial []sim.Range
}

func (f *follower) MemAlloc(size int64) (cuda.Ptr, error) {
	if len(f.initial) > 0 {
		r := f.initial[0]
		f.initial = f.initial[1:]
		return r.Addr, nil
	}
	r := f.leader.taken[f.next]
	f.next++
	if r.Size != size {
		return 0, fmt.Errorf("segment of %d bytes, want %d", size, r.Size)
	}
	return r.Addr, nil
}

func randomRequest(rng *rand.Rand) (int64, cuda.Stream) {
	sizes := [...]int64{700, 5000, 1 << 20, 1<<20 + 4096, 3 << 20, 7<<20 + 300<<10, 11 << 20, 26 << 20}
	return sizes[rng.IntN(len(sizes))] + rng.Int64N(4)<<9, cuda.Stream(rng.IntN(2))
}

func churn(t *testing.T, rng *rand.Rand, a *Torch, live []cuda.Ptr, asked map[cuda.Ptr]int64) []cuda.Ptr {
	if len(live) == 0 || rng.IntN(100) < 55 {
		size, stream := randomRequest(rng)
		p, err := a.Malloc(size, stream, 0)
		if err != nil {
			t.Fatal(err)
		}
		asked[p] = size
		return append(live, p)
	}
	i := rng.IntN(len(live))
	if err := a.Free(live[i]); err != nil {
		t.Fatal(err)
	}
	return slices.Delete(live, i, i+1)
}

// both gives the same request to both allocators.
func both(t *testing.T, rng *rand.Rand, step int, a, b *Torch, live []cuda.Ptr, asked map[cuda.Ptr]int64, twin map[cuda.Ptr]cuda.Ptr, moved bool) []cuda.Ptr {
	if len(live) == 0 || rng.IntN(100) < 55 {
		size, stream := randomRequest(rng)
		p, err := a.Malloc(size, stream, 0)
		if err != nil {
			t.Fatal(err)
		}
		q, err := b.Malloc(size, stream, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p != q && !moved {
			t.Fatalf("step %d: %d bytes at %#x, want %#x", step, size, q, p)
		}
		asked[p], twin[p] = size, q
		live = append(live, p)
	} else {
		i := rng.IntN(len(live))
		if err := a.Free(live[i]); err != nil {
			t.Fatal(err)
		}
		if err := b.Free(twin[live[i]]); err != nil {
			t.Fatal(err)
		}
		live = slices.Delete(live, i, i+1)
	}
	if a.Stats().Reserved != b.Stats().Reserved || a.Stats().Allocated != b.Stats().Allocated {
		t.Fatalf("step %d: accounts %+v and %+v", step, a.Stats(), b.Stats())
	}
	return live
}
