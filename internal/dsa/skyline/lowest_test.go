package skyline

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLowest takes segments of few heights from the heap: the lowest first, and of equally low ones the leftmost.
func TestLowest(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 12))
		var heap lowest
		var want, got []contour
		for a := range int32(1 + rng.IntN(40)) {
			want = append(want, contour{rng.Int64N(4), a})
		}
		for _, k := range rng.Perm(len(want)) {
			heap.push(want[k].height, want[k].a)
		}
		slices.SortFunc(want, func(a, b contour) int { return cmp.Or(cmp.Compare(a.height, b.height), cmp.Compare(a.a, b.a)) })
		for len(heap) > 0 {
			height, a := heap.pop()
			got = append(got, contour{height, a})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, expected %v", seed, got, want)
		}
	}
}
