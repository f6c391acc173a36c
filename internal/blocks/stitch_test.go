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

// TestStitchAcrossStreams runs random requests on streams that run behind, and looks whether memory passes on only when that is safe.
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
			r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true}
			for range 6000 {
				if rng.IntN(100) == 0 {
					r.capture(!dev.capturing)
				}
				r.step()
			}
			if r.ooms == 0 {
				t.Error("the device was never full: the test is too easy")
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
			cycle := randomCycle(rng, 60, 4)
			if err := a.Adopt(cycle); err != nil {
				t.Fatal(err)
			}
			r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true, cycle: cycle}
			for range 8000 {
				if rng.IntN(200) == 0 {
					r.capture(!dev.capturing)
				}
				r.step()
			}
			f, s := a.Followed()
			followed, strayed = followed+f, strayed+s
			r.capture(false)
			r.finish()
		})
	}
	if followed < strayed || strayed < 1000 {
		t.Errorf("%d requests by plan, %d not: the test is too easy", followed, strayed)
	}
}

// randomCycle plans an iteration of some requests on streams of their own arenas.
func randomCycle(rng *rand.Rand, steps int, streams cuda.Stream) *Cycle {
	requests := make([]Request, steps)
	for i := range requests {
		requests[i] = Request{
			Size: 1 + rng.Int64N(1<<(10+rng.IntN(16))), Stream: cuda.Stream(rng.IntN(int(streams))), Lasts: int32(1 + rng.IntN(12)),
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
