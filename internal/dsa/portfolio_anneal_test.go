package dsa

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
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

// TestHeavyTailed has problems that are too large for an exact search, and where annealing comes lower than skylines.
func TestHeavyTailed(t *testing.T) {
	for seed := range uint64(2) {
		p := heavyTailed(seed, 8000)
		least := int64(math.MaxInt64)
		for _, name := range []string{"first-fit-Z", "first-fit-A", "first-fit-W", "best-fit-Z"} {
			l, err := solver(t, name).Solve(t.Context(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, l.Peak)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		l, err := solver(t, "auto").Solve(ctx, p, Options{})
		if err == nil {
			err = Check(p, l)
		}
		if err != nil {
			t.Fatal(err)
		}
		if float64(l.Peak) > 0.97*float64(least) {
			t.Errorf("seed %d: a peak of %d by %s, where first-fit and best-fit come to %d", seed, l.Peak, l.Method, least)
		}
	}
}
