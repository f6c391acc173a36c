package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// tightConf is settings under which mappings are undone often.
func tightConf() StitchConf {
	return StitchConf{PieceMin: 2 << 20, PieceMax: 16 << 20, Pieces: 32, Parts: 4, Aliases: 1}
}

// TestStitchAcrossStreams makes random requests on streams that run behind, and checks that memory passes on only when that is safe.
func TestStitchAcrossStreams(t *testing.T) {
	ooms := 0
	for seed := range uint64(8) {
		for name, conf := range map[string]StitchConf{"default": DefaultStitchConf(), "tight": tightConf()} {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				dev := newStreams(t, rng, 4, 500<<20)
				a, err := NewStitch(dev, conf)
				if err != nil {
					t.Fatal(err)
				}
				r := crossing{t: t, rng: rng, dev: dev, a: a}
				for range 6000 {
					r.step()
				}
				if len(dev.waits) == 0 || dev.Calls(sim.Unmap) == 0 || a.Stitches() == 0 {
					t.Errorf("%d waits, %d stitches, %d unmaps: the test is too easy", len(dev.waits), a.Stitches(), dev.Calls(sim.Unmap))
				}
				ooms += r.ooms
				r.finish()
			})
		}
	}
	if ooms == 0 {
		t.Error("the device was never full: the test is too easy")
	}
}

// TestCapture does the same while graphs are captured now and then, with requests of all sizes and of private pools.
func TestCapture(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 8))
			dev := newStreams(t, rng, 6, 500<<20)
			a, err := NewStitch(dev, tightConf())
			if err != nil {
				t.Fatal(err)
			}
			a.maxPlaces, a.maxHeaps = 100, 2
			r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true}
			for range 6000 {
				if rng.IntN(100) == 0 {
					r.capture(!dev.capturing)
				}
				r.step()
			}
			if r.ooms == 0 || len(a.gone) == 0 {
				t.Errorf("%d requests were too much, %d places were forgotten: the test is too easy", r.ooms, len(a.gone))
			}
			r.capture(false)
			r.finish()
		})
	}
}

// TestCyclicAcrossStreams does the same with a plan, which the requests follow now and then.
func TestCyclicAcrossStreams(t *testing.T) {
	var followed, strayed int64
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			dev := newStreams(t, rng, 5, 800<<20)
			if seed%4 > 0 {
				dev.stuck = -1
			}
			a, err := NewCyclic(dev, tightConf())
			if err != nil {
				t.Fatal(err)
			}
			a.maxPlaces, a.maxHeaps = 100, 2
			cycle := randomCycle(rng, 60, 4)
			if err := a.Adopt(cycle); err != nil {
				t.Fatal(err)
			}
			r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true, cycle: cycle}
			for range 8000 {
				if rng.IntN(200) == 0 {
					r.capture(!dev.capturing)
				}
				r.replan(a)
				r.step()
			}
			a.SetHasty(false)
			f, s := a.Followed()
			followed, strayed = followed+f, strayed+s
			r.capture(false)
			r.finish()
		})
	}
	if 2*followed < strayed || strayed < 1000 {
		t.Errorf("%d requests by plan, %d not: the test is too easy", followed, strayed)
	}
}

// randomCycle plans an iteration of some requests on streams of their own arenas.
func randomCycle(rng *rand.Rand, steps int, streams cuda.Stream) *Cycle {
	requests := make([]Request, steps)
	for i := range requests {
		requests[i] = Request{
			Size: 1 + rng.Int64N(1<<(10+rng.IntN(16))), Stream: cuda.Stream(rng.IntN(int(streams))), Lasts: int32(1 + rng.IntN(min(12, steps))),
		}
		switch rng.IntN(20) {
		case 0:
			requests[i].Lasts = 0
		case 1:
			requests[i].Lasts = int32(steps)
		}
	}
	return firstFit(requests)
}

// TestMemoryGoesAround: two streams take turns with more memory than each could have for itself, the same in each step.
func TestMemoryGoesAround(t *testing.T) {
	dev := sim.New(8<<30, sim.H200())
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	turn := func(stream cuda.Stream, sizes ...int64) {
		var held []cuda.Ptr
		for _, size := range sizes {
			p, err := a.Malloc(size<<20, stream, 0)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, p)
		}
		for _, p := range held {
			if err := a.Free(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for step := range 12 {
		before := dev.MemoryCalls()
		turn(0, 700, 300, 900)
		turn(1, 1000, 850)
		turn(0, 1800)
		turn(1, 1200)
		if calls := dev.MemoryCalls() - before; step > 3 && calls > 0 {
			t.Errorf("step %d: %d calls that take or map memory", step, calls)
		}
	}
	if most := int64(1900+50) << 20; dev.Used() > most {
		t.Errorf("%d bytes are taken, want %d at most", dev.Used(), most)
	}
}

// TestManyStreams checks that streams that come and go leave nothing behind.
func TestManyStreams(t *testing.T) {
	for _, size := range []int64{3 << 20, 700 << 20} {
		dev := sim.New(8<<30, sim.H200())
		a, err := NewStitch(dev, DefaultStitchConf())
		if err != nil {
			t.Fatal(err)
		}
		for stream := range cuda.Stream(20_000) {
			p, err := a.Malloc(size+int64(stream), stream, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Free(p); err != nil {
				t.Fatal(err)
			}
		}
		if regions := len(a.regions) - len(a.spare.regions); len(a.heaps) > 2*manyHeaps || regions > 2*manyHeaps || len(a.places) > 4*manyHeaps {
			t.Errorf("%d bytes: %d heaps, %d regions and %d places are left", size, len(a.heaps), regions, len(a.places))
		}
	}
}

// TestAddressesRunOut checks that mappings are undone when the device has no more addresses.
func TestAddressesRunOut(t *testing.T) {
	dev := &cramped{Device: sim.New(1<<30, sim.H200()), left: 300 << 30}
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(400) {
		p, err := a.Malloc(900<<20+i, cuda.Stream(i%50), 0)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if err := a.Free(p); err != nil {
			t.Fatal(err)
		}
	}
}

// cramped is a device with few addresses.
type cramped struct {
	*sim.Device
	left int64
}

func (d *cramped) AddressReserve(size int64) (cuda.Ptr, error) {
	if size > d.left {
		return 0, cuda.ErrOutOfMemory
	}
	d.left -= size
	return d.Device.AddressReserve(size)
}

func (d *cramped) AddressFree(p cuda.Ptr, size int64) error {
	d.left += size
	return d.Device.AddressFree(p, size)
}
