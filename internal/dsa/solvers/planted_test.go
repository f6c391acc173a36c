package solvers

import (
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/models/layouts"
)

// TestPlantedFit fits problems in a capacity that short searches do not meet: with any number of workers, in the same layout.
func TestPlantedFit(t *testing.T) {
	for _, planted := range []*layouts.Planted{layouts.Heaped(1012), layouts.Cut(1003)} {
		p := planted.Problem(1012)
		var first dsa.Layout
		for _, workers := range []int{1, 3} {
			o := dsa.Options{Capacity: layouts.PlantedCapacity, Workers: workers}
			l, err := Solver(t, "auto").Solve(t.Context(), p, o)
			if err != nil || l.Peak > o.Capacity || dsa.Check(p, l) != nil {
				t.Fatalf("%d workers: peak %d: %v, %v", workers, l.Peak, err, dsa.Check(p, l))
			}
			if workers == 1 {
				first = l
			} else if !slices.Equal(l.Offsets, first.Offsets) {
				t.Errorf("another layout with %d workers", workers)
			}
		}
	}
}
