package dsa

import (
	"math"
	"math/rand/v2"
	"testing"
)

// heavyTailed has a birth at each moment, and lives of which a few are a thousand times as long as most.
func heavyTailed(seed uint64, n int64) *Problem {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &Problem{Align: 1}
	for start := range n {
		life := 1 + int64(math.Pow(1-rng.Float64(), -1/0.7))%n
		p.Start, p.End, p.Size = append(p.Start, start), append(p.End, start+life), append(p.Size, 1+rng.Int64N(10_000))
	}
	return p
}

// TestHeavyTailed has problems that are too large for an exact search, and where annealing comes lower than skylines. It is the same with
// any number of workers.
func TestHeavyTailed(t *testing.T) {
	for seed := range uint64(2) {
		p := heavyTailed(seed, 8000)
		peak := func(anneals bool, workers int) int64 {
			auto := solver(t, "auto").(portfolio)
			auto.work, auto.anneals = 1<<22, anneals
			l, err := auto.Solve(t.Context(), p, Options{Workers: workers})
			if err == nil {
				err = Check(p, l)
			}
			if err != nil {
				t.Fatal(err)
			}
			return l.Peak
		}
		with, without := peak(true, 1), peak(false, 2)
		if float64(with) > 0.995*float64(without) {
			t.Errorf("seed %d: a peak of %d with annealing, %d without", seed, with, without)
		}
		if again := peak(true, 3); again != with {
			t.Errorf("seed %d: a peak of %d with three workers, %d with one", seed, again, with)
		}
	}
}
