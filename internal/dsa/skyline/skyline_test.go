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
// first buffer of the order that lives within it, and rises to its lower neighbour if there is none. It also returns the lower bounds of the
// peak that it comes to know, each above those before: the tops of buffers, and what is left over a section on top of the height it rises to.
func plain(in *sections.Instance, order []int) (out, bounds []int64) {
	height, left := make([]int64, in.Sections()), slices.Clone(in.Load)
	out, order = make([]int64, in.Len()), slices.Clone(order)
	know := func(bound int64) {
		if len(bounds) == 0 || bound > bounds[len(bounds)-1] {
			bounds = append(bounds, bound)
		}
	}
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
			for s := from; s < to; s++ {
				left[s] -= in.Size[k]
			}
			know(top)
		case a > 0 && (b == len(height) || height[a-1] < height[b]):
			top = height[a-1]
		default:
			top = height[b]
		}
		if at < 0 {
			know(top + slices.Max(left[a:b]))
		}
		for s := from; s < to; s++ {
			height[s] = top
		}
	}
	return out, bounds
}

// shortLives returns a problem of lives of few lengths, so that many buffers have the same.
func shortLives(rng *rand.Rand) *dsa.Problem {
	p := &dsa.Problem{Align: 1}
	for range 1 + rng.IntN(60) {
		start := rng.Int64N(24)
		dsatest.Add(p, start, start+1+rng.Int64N(5), 1+rng.Int64N(6))
	}
	return p
}

// byLife orders buffers, the longest life first. Of equal lives the one that is born first comes first, and of those born at once the first of
// the problem.
func byLife(in *sections.Instance, p *dsa.Problem) []int {
	order := make([]int, in.Len())
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(life(p, in.ID[b]), life(p, in.ID[a])), cmp.Compare(p.Start[in.ID[a]], p.Start[in.ID[b]]), cmp.Compare(in.ID[a], in.ID[b]))
	})
	return order
}

func life(p *dsa.Problem, i int32) int64 { return p.End[i] - p.Start[i] }

// TestPlain compares offsets, the peak and the bounds that stop is asked about with those of the plain skyline.
func TestPlain(t *testing.T) {
	var sky skyline.Skyline
	var ranking sections.Ranking
	tied := 0
	for seed := range uint64(400) {
		p := shortLives(rand.New(rand.NewPCG(seed, 11)))
		in := sections.New(p)
		order := byLife(in, p)
		var asked []int64
		ask := func(bound int64) bool {
			asked = append(asked, bound)
			return false
		}
		got := make([]int64, in.Len())
		want, bounds := plain(in, order)
		peak, ok := sky.Run(in, ranking.ByKey(in, "W"), ask, got)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("seed %d: offsets %v, expected %v", seed, got, want)
		}
		if !slices.Equal(asked, bounds) || peak != bounds[len(bounds)-1] {
			t.Fatalf("seed %d: a peak of %d after the bounds %v, expected %v", seed, peak, asked, bounds)
		}
		top := int64(0)
		for k := range got {
			if top = max(top, got[k]+in.Size[k]); peak < top {
				t.Fatalf("seed %d: a peak of %d, and buffer %d ends at %d", seed, peak, k, top)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(life(p, in.ID[b]), life(p, in.ID[a])), cmp.Compare(b, a))
		})
		if other, _ := plain(in, order); !slices.Equal(other, want) {
			tied++
		}
	}
	if tied < 100 {
		t.Errorf("in %d of 400 problems it matters which of two equal lives comes first", tied)
	}
}
