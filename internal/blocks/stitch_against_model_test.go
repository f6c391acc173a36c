package blocks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// TestStitchAgainstModel makes the same random requests of Stitch and of its plain form, on devices that become full, with one stream and
// with several, and expects the same addresses, the same memory taken, and the same mappings, searches and waits.
func TestStitchAgainstModel(t *testing.T) {
	const mib = 1 << 20
	small := StitchConf{PieceMin: 2 * mib, PieceMax: 16 * mib, Pieces: 16, Parts: 4, Aliases: 1 << 20}
	slack := small
	slack.Slack = 0.25
	large := StitchConf{PieceMin: 4 * mib, PieceMax: 24 * mib, Pieces: 8, Parts: 2, Aliases: 1 << 20}
	var sum plainStitch
	for i, conf := range []StitchConf{small, slack, large} {
		for streams := range 3 {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%d/%d/%d", i, streams+1, seed), func(t *testing.T) {
					m := stitchAgainstModel(t, conf, rand.New(rand.NewPCG(seed, uint64(streams))), cuda.Stream(streams+1))
					sum.stitches, sum.retries = sum.stitches+m.stitches, sum.retries+m.retries
					sum.waits, sum.fetched, sum.reclaimings = sum.waits+m.waits, sum.fetched+m.fetched, sum.reclaimings+m.reclaimings
				})
			}
		}
	}
	if min(sum.stitches, sum.retries, int64(sum.waits), int64(sum.fetched), int64(sum.reclaimings)) < 100 {
		t.Errorf("%d stitches, %d retries, %d waits, %d pieces fetched and %d places reclaimed: the test is too easy",
			sum.stitches, sum.retries, sum.waits, sum.fetched, sum.reclaimings)
	}
}

func stitchAgainstModel(t *testing.T, conf StitchConf, rng *rand.Rand, streams cuda.Stream) *plainStitch {
	const capacity = 256 << 20
	dev := sim.New(capacity, sim.CostTable{})
	a, err := NewStitch(dev, conf)
	if err != nil {
		t.Fatal(err)
	}
	m := &plainStitch{dev: sim.New(capacity, sim.CostTable{}), conf: conf, capacity: capacity}
	var live []cuda.Ptr
	phase := cuda.Stream(0)
	for step := range 1200 {
		switch x := rng.IntN(1000); {
		case x < 4:
			if err := a.Empty(); err != nil {
				t.Fatal(err)
			}
			m.empty()
		case x < 20: // most of what is in use goes, and another stream has the next requests
			phase = cuda.Stream(rng.IntN(int(streams)))
			for len(live) > rng.IntN(4) {
				live = freeBoth(t, a, m, live, rng.IntN(len(live)))
			}
		case len(live) > 0 && (x < 480 || len(live) > 30):
			live = freeBoth(t, a, m, live, rng.IntN(len(live)))
		default:
			stream := phase
			if rng.IntN(8) == 0 {
				stream = cuda.Stream(rng.IntN(int(streams)))
			}
			size := int64(3+rng.IntN(1<<(1+rng.IntN(7)))) * plainUnit
			p, err := a.Malloc(size, stream, 0)
			if want := m.malloc(size, stream); p != want {
				t.Fatalf("step %d: %d bytes of stream %d at %#x (%v), the model has them at %#x", step, size, stream, p, err, want)
			}
			if p != 0 {
				live = append(live, p)
			}
		}
		s := a.Stats()
		got := [...]int64{s.Allocated, s.Reserved, s.Retries, a.Stitches(), a.Searches(), dev.Calls(sim.Map), dev.Calls(sim.StreamWaitEvent)}
		want := [...]int64{m.allocated, m.reserved, m.retries, m.stitches, m.searches, int64(m.mappings), int64(m.waits)}
		if got != want {
			t.Fatalf("step %d: allocated, reserved, retries, stitches, searches, mappings, waits\n%v, the model has\n%v", step, got, want)
		}
	}
	return m
}

// freeBoth frees block i of those that live.
func freeBoth(t *testing.T, a *Stitch, m *plainStitch, live []cuda.Ptr, i int) []cuda.Ptr {
	t.Helper()
	if err := a.Free(live[i]); err != nil {
		t.Fatal(err)
	}
	m.free(live[i])
	return slices.Delete(live, i, i+1)
}
