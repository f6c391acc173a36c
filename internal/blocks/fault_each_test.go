package blocks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// TestFaultsAtEachPosition makes each driver call of a short program fail at each position, once and from there on, and checks what
// TestFaults checks.
func TestFaultsAtEachPosition(t *testing.T) {
	for c := range numCalls {
		for _, onwards := range []bool{false, true} {
			t.Run(fmt.Sprint(callNames[c], "/", onwards), func(t *testing.T) {
				for seed := range uint64(2) {
					for at, hit := 0, true; hit; at++ {
						err := errInjected
						if (at+int(seed))%2 == 1 {
							err = fmt.Errorf("injected: %w", cuda.ErrOutOfMemory)
						}
						hit = runFaultAt(t, seed, c, func(n int) error {
							if n == at || onwards && n > at {
								return err
							}
							return nil
						})
					}
				}
			})
		}
	}
}

// runFaultAt reports whether a call failed.
func runFaultAt(t *testing.T, seed uint64, c call, fails func(n int) error) bool {
	rng := rand.New(rand.NewPCG(seed, 21))
	dev := &faulty{streams: newStreams(t, rng, 3, 200<<20)}
	a, err := NewStitch(dev, tightConf())
	if err != nil {
		t.Fatal(err)
	}
	r := crossing{t: t, rng: rng, dev: dev.streams, a: a, mixed: true}
	r.fails = func(err error) bool { return errors.Is(err, errInjected) || errors.Is(err, cuda.ErrOutOfMemory) }
	dev.fails[c] = fails
	for i := range 250 {
		if i%60 == 30 {
			r.capture(!dev.capturing)
		}
		r.step()
	}
	r.capture(false)
	dev.fails[c] = nil
	for range 60 {
		r.step()
	}
	r.finish()
	return dev.failed[c] > 0
}
