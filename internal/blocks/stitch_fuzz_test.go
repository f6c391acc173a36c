package blocks

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// choices is a source of random numbers that are bytes of a fuzzer's input, two for each number.
type choices struct {
	data []byte
	more uint64 // numbers after the end of the input
}

func (c *choices) Uint64() uint64 {
	if len(c.data) < 2 {
		c.data = nil
		c.more++
		return mix(c.more)
	}
	x := uint64(c.data[0])<<8 | uint64(c.data[1])
	c.data = c.data[2:]
	return x * 0x0001_0001_0001_0001
}

// FuzzStitch drives stitch, and cyclic with a plan, on streams that run behind, with captures and calls that fail.
func FuzzStitch(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		data := make([]byte, 4000)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		source := &choices{data: data}
		rng := rand.New(source)
		dev := &faulty{streams: newStreams(t, rng, cuda.Stream(2+rng.IntN(4)), 200<<20)}
		if rng.IntN(2) == 0 {
			dev.stuck = -1
		}
		r := crossing{t: t, rng: rng, dev: dev.streams, mixed: true}
		r.fails = func(err error) bool { return errors.Is(err, errInjected) || errors.Is(err, cuda.ErrOutOfMemory) }
		a, err := NewCyclic(dev, tightConf())
		if err != nil {
			t.Fatal(err)
		}
		a.maxPlaces, a.maxHeaps = 1+rng.IntN(100), 1+rng.IntN(4)
		r.a = a
		if rng.IntN(2) == 0 {
			r.cycle = randomCycle(rng, 1+rng.IntN(30), dev.n-1)
			if err := a.Adopt(r.cycle); err != nil {
				t.Fatal(err)
			}
		}
		for len(source.data) > 0 {
			switch rng.IntN(64) {
			case 0:
				r.capture(!dev.capturing)
			case 1:
				dev.fails[rng.IntN(int(numCalls))] = faults["often"](rng, errInjected)
			case 2:
				dev.fails[rng.IntN(int(numCalls))] = faults["often"](rng, cuda.ErrOutOfMemory)
			case 3:
				dev.fails = [numCalls]func(int) error{}
			}
			r.step()
			a.checkPieces(t)
		}
		dev.fails = [numCalls]func(int) error{}
		r.capture(false)
		r.finish()
	})
}
