package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// churner frees and allocates again in a steady state of many sizes.
type churner struct {
	a    Allocator
	ptrs [300]cuda.Ptr
	next int
}

func newChurner(tb testing.TB, spec Spec) *churner {
	c := &churner{a: spec.open(tb, sim.New(0, sim.H200()))}
	for range 20 * len(c.ptrs) {
		c.step(tb)
	}
	return c
}

// step frees the oldest block and allocates one of another size in its place.
func (c *churner) step(tb testing.TB) {
	i := c.next % len(c.ptrs)
	if c.next >= len(c.ptrs) {
		if err := c.a.Free(c.ptrs[i]); err != nil {
			tb.Fatal(err)
		}
	}
	size := int64(c.next*c.next%97+1) * 37 << (c.next % 15)
	var err error
	if c.ptrs[i], err = c.a.Malloc(size, 0, 0); err != nil {
		tb.Fatal(err)
	}
	c.next++
}

// looper makes the same requests in each iteration, which goes forward through layers of a few kinds and then backward.
type looper struct {
	a     Allocator
	sizes []int64
	frees [][]int // after each request, those whose blocks are freed
	ptrs  []cuda.Ptr
}

func newLooper(tb testing.TB, dev cuda.Device, seed uint64) *looper {
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	var kinds [5][12]int64
	for k := range kinds {
		for i := range kinds[k] {
			kinds[k][i] = (1 + rng.Int64N(1<<rng.IntN(8))) * 1_300_000
		}
	}
	l := &looper{a: a}
	var layers [][]int
	for range 60 {
		sizes := &kinds[rng.IntN(len(kinds))]
		var kept []int
		for i, size := range sizes {
			if n := l.request(size); i%3 > 0 {
				kept = append(kept, n)
			} else if i > 0 {
				l.frees[n] = append(l.frees[n], n)
			}
		}
		layers = append(layers, kept)
	}
	for i := len(layers) - 1; i >= 0; i-- {
		for _, n := range layers[i] {
			gradient := l.request(l.sizes[n])
			l.frees[gradient] = append(l.frees[gradient], n, gradient)
		}
	}
	l.ptrs = make([]cuda.Ptr, len(l.sizes))
	return l
}

func (l *looper) request(size int64) int {
	l.sizes, l.frees = append(l.sizes, size), append(l.frees, nil)
	return len(l.sizes) - 1
}

func (l *looper) iterate(tb testing.TB) {
	free := func(i int) {
		if err := l.a.Free(l.ptrs[i]); err != nil {
			tb.Fatal(err)
		}
		l.ptrs[i] = 0
	}
	for i, size := range l.sizes {
		var err error
		if l.ptrs[i], err = l.a.Malloc(size, 0, 0); err != nil {
			tb.Fatal(err)
		}
		for _, k := range l.frees[i] {
			free(k)
		}
	}
	for i, p := range l.ptrs {
		if p != 0 {
			free(i)
		}
	}
}

// TestRepetitionIsSilent: iterations that make the same requests end up without driver calls, and without allocations in Go.
func TestRepetitionIsSilent(t *testing.T) {
	const settled = 8
	for seed := range uint64(10) {
		dev := sim.New(0, sim.H200())
		l := newLooper(t, dev, seed)
		for range settled {
			l.iterate(t)
		}
		calls := dev.MemoryCalls()
		if n := testing.AllocsPerRun(3, func() { l.iterate(t) }); n > 0 {
			t.Errorf("seed %d: %v allocations an iteration", seed, n)
		}
		if n := dev.MemoryCalls() - calls; n > 0 {
			t.Errorf("seed %d: %d calls after iteration %d", seed, n, settled)
		}
	}
}

// BenchmarkReuse times a malloc and a free of a size that is warm, among others that are in use.
func BenchmarkReuse(b *testing.B) {
	for _, spec := range candidates(b) {
		b.Run(spec.Text, func(b *testing.B) {
			c := newChurner(b, spec)
			b.ReportAllocs()
			for b.Loop() {
				p, err := c.a.Malloc(48<<20, 0, 0)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.a.Free(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestHotPathAllocatesNothing: in a steady state PyTorch's allocator makes no allocations in Go.
func TestHotPathAllocatesNothing(t *testing.T) {
	for _, spec := range candidates(t) {
		c := newChurner(t, spec)
		if _, torch := c.a.(*Torch); !torch {
			continue
		}
		if n := testing.AllocsPerRun(2000, func() { c.step(t) }); n > 0 {
			t.Errorf("%s: %v allocations a step", spec.Text, n)
		}
	}
}

// BenchmarkChurn times a free and a malloc.
func BenchmarkChurn(b *testing.B) {
	for _, spec := range candidates(b) {
		b.Run(spec.Text, func(b *testing.B) {
			c := newChurner(b, spec)
			b.ReportAllocs()
			for b.Loop() {
				c.step(b)
			}
		})
	}
}

// BenchmarkKept times requests of one size, just too large for PyTorch's allocator, that are all kept, so that no free memory can be
// reused.
func BenchmarkKept(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		a, err := NewStitch(sim.New(0, sim.H200()), DefaultStitchConf())
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			if _, err := a.Malloc(largeSize, 0, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/malloc")
}
