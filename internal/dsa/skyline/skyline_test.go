package skyline_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/sections"
	"gm/internal/dsa/skyline"
)

// plain is the skyline as arXiv 1804.10001 describes it, one height for each section: the lowest stretch, the leftmost of several, takes the
// first buffer of the order that lives within it, and rises to its lower neighbour if there is none.
func plain(in *sections.Instance, order []int) []int64 {
	height, out := make([]int64, in.Sections()), make([]int64, in.Len())
	order = slices.Clone(order)
	for len(order) > 0 {
		low := slices.Min(height)
		a := slices.Index(height, low)
		b := a
		for b < len(height) && height[b] == low {
			b++
		}
		at := slices.IndexFunc(order, func(k int) bool { return int(in.Lo[k]) >= a && int(in.Hi[k]) <= b })
		from, to, top := a, b, int64(0)
		switch {
		case at >= 0:
			k := order[at]
			out[k], from, to, top = low, int(in.Lo[k]), int(in.Hi[k]), low+in.Size[k]
			order = slices.Delete(order, at, at+1)
		case a > 0 && (b == len(height) || height[a-1] < height[b]):
			top = height[a-1]
		default:
			top = height[b]
		}
		for s := from; s < to; s++ {
			height[s] = top
		}
	}
	return out
}

// TestPlain compares offsets with those of the plain skyline. Lives are of few lengths, so that many buffers have the same: then the one that
// is born first comes first, and of those born at once the first of the problem.
func TestPlain(t *testing.T) {
	var sky skyline.Skyline
	var ranking sections.Ranking
	tied := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := &dsa.Problem{Align: 1}
		for range 1 + rng.IntN(60) {
			start := rng.Int64N(24)
			dsatest.Add(p, start, start+1+rng.Int64N(5), 1+rng.Int64N(6))
		}
		in := sections.New(p)
		order := make([]int, in.Len())
		for k := range order {
			order[k] = k
		}
		life := func(k int) int64 { return p.End[in.ID[k]] - p.Start[in.ID[k]] }
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(life(b), life(a)), cmp.Compare(p.Start[in.ID[a]], p.Start[in.ID[b]]), cmp.Compare(in.ID[a], in.ID[b]))
		})
		got, want := make([]int64, in.Len()), plain(in, order)
		peak, ok := sky.Run(in, ranking.ByKey(in, "W"), func(int64) bool { return false }, got)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("seed %d: offsets %v, expected %v", seed, got, want)
		}
		for k := range got {
			if peak < got[k]+in.Size[k] {
				t.Fatalf("seed %d: a peak of %d, and buffer %d ends at %d", seed, peak, k, got[k]+in.Size[k])
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(life(b), life(a)), cmp.Compare(b, a)) })
		if !slices.Equal(plain(in, order), want) {
			tied++
		}
	}
	if tied < 100 {
		t.Errorf("in %d of 400 problems it matters which of two equal lives comes first", tied)
	}
}
