package solvers

import (
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/portfolio"
	"gm/internal/models/layouts"
)

// TestHeavyTailed has problems that are too large for an exact search, on which annealing is better than skylines. The number of workers
// makes no difference.
func TestHeavyTailed(t *testing.T) {
	const work = 1 << 22
	for seed := range uint64(2) {
		p := layouts.HeavyTailed(8000, seed)
		peak := func(anneals bool, workers int) int64 {
			auto := Auto().(portfolio.Solver)
			auto.Work, auto.Anneals = work, anneals
			l, err := auto.Solve(t.Context(), p, dsa.Options{Workers: workers})
			if err == nil {
				err = dsa.Check(p, l)
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
