package blocks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/retry"
)

// residents returns the allocators that programs may run on, by default and with tighter settings.
func residents(t *testing.T) []Spec {
	return slices.DeleteFunc(candidates(t), func(s Spec) bool { return !s.InProcess })
}

// capturable refuses calls that are not possible while a graph is captured, as libgm.so does.
type capturable struct{ *faulty }

func (d *capturable) Unmap(p cuda.Ptr, size int64) error {
	if d.capturing {
		return cuda.ErrCapturing
	}
	return d.faulty.Unmap(p, size)
}

func (d *capturable) MemFree(p cuda.Ptr) error {
	if d.capturing {
		return cuda.ErrCapturing
	}
	return d.faulty.MemFree(p)
}

// TestResidentsAcrossStreams drives allocators that programs may run on with several streams that run behind, and captures graphs now and then.
func TestResidentsAcrossStreams(t *testing.T) {
	for _, spec := range residents(t) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(spec.Text, "/", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 21))
				dev := newStreams(t, rng, 4, 400<<20)
				steady := retry.New(&capturable{&faulty{streams: dev}}, func(string, error) {})
				a := spec.open(t, steady)
				r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true, owes: steady.Owes}
				for range 2000 {
					if rng.IntN(100) == 0 {
						r.capture(!dev.capturing)
					}
					r.step()
				}
				r.capture(false)
				r.finish()
			})
		}
	}
}

// TestResidentsFaults makes driver calls fail, each kind by itself and all together, as libgm.so has them: calls that undo something are
// repeated until they succeed.
func TestResidentsFaults(t *testing.T) {
	for _, spec := range residents(t) {
		for c := range numCalls + 1 {
			if c == callEventDestroy { // the driver's device does not let this fail
				continue
			}
			what := "all"
			if c < numCalls {
				what = callNames[c]
			}
			for seed := range uint64(4) {
				t.Run(fmt.Sprint(spec.Text, "/", what, "/", seed), func(t *testing.T) { runResidentFaults(t, spec, c, seed) })
			}
		}
	}
}

func runResidentFaults(t *testing.T, spec Spec, failing call, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 22))
	dev := &faulty{streams: newStreams(t, rng, 4, 400<<20)}
	steady := retry.New(&capturable{dev}, func(string, error) {})
	a := spec.open(t, steady)
	r := crossing{t: t, rng: rng, dev: dev.streams, a: a, mixed: true, owes: steady.Owes}
	r.fails = func(error) bool { return true } // what could not be unmapped may be in the way, too
	for c := range numCalls {
		if often := 1 + rng.IntN(20); c == failing || failing == numCalls && c != callEventDestroy {
			dev.fails[c] = func(int) error {
				switch x := rng.IntN(100); {
				case x < often:
					return errInjected
				case x < 2*often:
					return fmt.Errorf("injected: %w", cuda.ErrOutOfMemory)
				}
				return nil
			}
		}
	}
	for range 1500 {
		if rng.IntN(100) == 0 {
			r.capture(!dev.capturing)
		}
		r.step()
	}
	r.capture(false)
	dev.fails = [numCalls]func(n int) error{}
	r.fails = nil
	for range 300 {
		r.step()
	}
	steady.Settle()
	r.finish()
}
