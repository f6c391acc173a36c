package blocks

import (
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// churner frees and allocates again in a steady state of many sizes.
type churner struct {
	a    *Torch
	ptrs [300]cuda.Ptr
	next int
}

func newChurner(tb testing.TB, expandable bool) *churner {
	conf := DefaultTorchConf()
	conf.Expandable = expandable
	a, err := NewTorch(sim.New(0, sim.H200()), conf)
	if err != nil {
		tb.Fatal(err)
	}
	c := &churner{a: a}
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

// TestHotPathAllocatesNothing: in a steady state the allocator leaves Go's memory alone.
func TestHotPathAllocatesNothing(t *testing.T) {
	for name, expandable := range map[string]bool{"torch": false, "expandable": true} {
		c := newChurner(t, expandable)
		if n := testing.AllocsPerRun(2000, func() { c.step(t) }); n > 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

// BenchmarkTorch times a free and a malloc.
func BenchmarkTorch(b *testing.B) {
	for name, expandable := range map[string]bool{"torch": false, "expandable": true} {
		b.Run(name, func(b *testing.B) {
			c := newChurner(b, expandable)
			b.ReportAllocs()
			for b.Loop() {
				c.step(b)
			}
		})
	}
}
