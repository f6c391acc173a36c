package iterations

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortByHash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 300, 5000} {
		var grams []gram
		for i := range n {
			grams = append(grams, gram{hash(rng.Uint64N(uint64(n/3 + 1))), i}, gram{rng.Uint64N(4), i})
		}
		want := slices.Clone(grams)
		slices.SortStableFunc(want, func(a, b gram) int { return cmp.Compare(a.hash, b.hash) })
		if sortByHash(grams); !slices.Equal(grams, want) {
			t.Errorf("%d grams are in another order", n)
		}
	}
}
