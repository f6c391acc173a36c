package blocks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// firstFit plans an iteration: each request at the lowest offset that is free for as long as it lasts, in the arena of its stream.
func firstFit(requests []Request) *Cycle {
	n := len(requests)
	c := &Cycle{Steps: make([]Step, n), Proven: true}
	arenas := map[cuda.Stream]int32{}
	for i, r := range requests {
		s := &c.Steps[i]
		*s = Step{Size: r.Size, Stream: r.Stream, Arena: NoArena, Lasts: r.Lasts}
		if r.Lasts == 0 {
			continue
		}
		if _, ok := arenas[r.Stream]; !ok {
			arenas[r.Stream] = int32(len(c.Arenas))
			c.Arenas = append(c.Arenas, 0)
		}
		s.Arena = arenas[r.Stream]
		for moved := true; moved; {
			moved = false
			for k := range i {
				o := &c.Steps[k]
				apart := i-k >= int(o.Lasts) && k+n-i >= int(s.Lasts)
				if o.Arena == s.Arena && !apart && o.Offset < s.end() && s.Offset < o.end() {
					s.Offset, moved = o.end(), true
				}
			}
		}
		c.Arenas[s.Arena] = max(c.Arenas[s.Arena], roundUp(s.end(), cuda.Granularity))
	}
	return c
}

// TestCyclicFollows runs a loop until its plan is found, and checks that it then neither searches nor calls the driver.
func TestCyclicFollows(t *testing.T) {
	for seed := range uint64(5) {
		dev := sim.New(0, sim.H200())
		a, err := NewCyclic(dev, PlannedStitchConf())
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		a.Record(1<<20, func(iteration []Request) {
			found = len(iteration)
			if err := a.Adopt(firstFit(iteration)); err != nil {
				t.Error(err)
			}
		})
		l := newLooper(t, dev, seed)
		l.a = a
		for range 8 {
			l.iterate(t)
		}
		if found != len(l.sizes) || a.Recording() {
			t.Fatalf("seed %d: found an iteration of %d requests, there are %d", seed, found, len(l.sizes))
		}
		calls, searches := dev.MemoryCalls(), a.Searches()
		followed, strayed := a.Followed()
		if n := testing.AllocsPerRun(3, func() { l.iterate(t) }); n > 0 {
			t.Errorf("seed %d: %v allocations an iteration", seed, n)
		}
		now, astray := a.Followed()
		if got := now - followed; got != int64(4*len(l.sizes)) || astray != strayed || dev.MemoryCalls() != calls || a.Searches() != searches {
			t.Errorf("seed %d: %d requests of %d by plan, %d not, %d calls, %d searches", seed,
				got, 4*len(l.sizes), astray-strayed, dev.MemoryCalls()-calls, a.Searches()-searches)
		}
	}
}

// TestCyclicStrays changes the requests of each iteration, and checks that no block is handed out twice and that the plan is resumed.
func TestCyclicStrays(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			dev := sim.New(0, sim.H200())
			a, err := NewCyclic(dev, PlannedStitchConf())
			if err != nil {
				t.Fatal(err)
			}
			a.Record(1<<20, func(iteration []Request) {
				if err := a.Adopt(firstFit(iteration)); err != nil {
					t.Error(err)
				}
			})
			l := newLooper(t, dev, seed)
			l.a = a
			for range 6 {
				l.iterate(t)
			}
			h := newHarness(t, rng, dev, a)
			h.crosses = true
			for range 6 {
				h.wander(l)
			}
			followed, strayed := a.Followed()
			if strayed == 0 || followed < strayed {
				t.Errorf("%d requests by plan, %d not", followed, strayed)
			}
			h.freeAll()
		})
	}
}

// wander makes the requests of an iteration, with some left out, some more, some freed late and some early.
func (h *harness) wander(l *looper) {
	ptrs := make([]cuda.Ptr, len(l.sizes))
	for i, size := range l.sizes {
		switch x := h.rng.IntN(300); {
		case x == 0:
			continue
		case x == 1:
			h.mallocOf(l.sizes[h.rng.IntN(len(l.sizes))], owner{})
		case x < 4:
			h.free()
		}
		h.complete()
		ptrs[i] = h.mallocOf(size, owner{})
		for _, k := range l.frees[i] {
			if _, ok := h.live[ptrs[k]]; ok && h.rng.IntN(300) > 0 {
				h.drop(ptrs[k])
			}
		}
	}
	for len(h.order) > 2 {
		h.free()
	}
}

func TestCycleCheck(t *testing.T) {
	good := func() *Cycle {
		return &Cycle{Arenas: []int64{8 << 20}, Steps: []Step{
			{Size: 4 << 20, Lasts: 2}, {Size: 1000, Arena: NoArena}, {Size: 2 << 20, Lasts: 1}, {Size: 4 << 20, Offset: 4 << 20, Lasts: 4},
		}}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(c *Cycle){
		"without requests":                                          func(c *Cycle) { c.Steps = nil },
		"step 0: there is no arena 1":                               func(c *Cycle) { c.Steps[0].Arena = 1 },
		"step 3: 4194304 bytes at 6291456 of an arena of 8388608":   func(c *Cycle) { c.Steps[3].Offset = 6 << 20 },
		"step 2: lasts 5 steps of 4":                                func(c *Cycle) { c.Steps[2].Lasts = 5 },
		"step 2: lasts 0 steps of 4":                                func(c *Cycle) { c.Steps[2].Lasts = 0 },
		"step 2: arena 0 belongs to stream 0, not 3":                func(c *Cycle) { c.Steps[2].Stream = 3 },
		"step 2 overlaps step 0, which is still in use":             func(c *Cycle) { c.Steps[0].Lasts = 3 },
		"step 0 overlaps step 2, which is still in use":             func(c *Cycle) { c.Steps[2].Lasts = 3 },
		"step 0: 4194304 bytes at 100 of an arena of 8388608":       func(c *Cycle) { c.Steps[0].Offset = 100 },
		"step 3: 4194304 bytes at 9223372036854775296":              func(c *Cycle) { c.Steps[3].Offset = 1<<63 - 512 },
		"arena 1 has 4611686018427387904 bytes":                     func(c *Cycle) { c.Arenas = append(c.Arenas, 1<<62) },
		"step 0: 140737488355329 bytes at 0 of an arena of 8388608": func(c *Cycle) { c.Steps[0].Size = MaxSize + 1 },
	} {
		c := good()
		change(c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestCyclicLooksAtSizes makes hashes identify the wrong step: requests must not get the place of another size.
func TestCyclicLooksAtSizes(t *testing.T) {
	dev := sim.New(0, sim.H200())
	a, err := NewCyclic(dev, PlannedStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for i := range int64(20) {
		requests = append(requests, Request{Size: 2<<20 + i<<20, Lasts: 1})
	}
	if err := a.Adopt(firstFit(requests)); err != nil {
		t.Fatal(err)
	}
	for hash := range a.grams.at {
		a.grams.at[hash] = 0
	}
	for i := range 100 {
		size := requests[i%20].Size
		p, err := a.Malloc(size, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dev.Extents(p, size); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if step, ok := a.byPtr.Get(p); ok && a.cycle.Steps[step].Size != size && a.states[step] == stepLive {
			t.Fatalf("request %d of %d bytes got the place of %d", i, size, a.cycle.Steps[step].Size)
		}
		if err := a.Free(p); err != nil {
			t.Fatal(err)
		}
	}
}
