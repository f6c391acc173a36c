package skyline

import (
	"math/rand/v2"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/sections"
)

// watched returns the sections that probes watch, as the comment of probes has it: the first of the greatest load of each stretch.
func watched(load []int64, stretch int) []int {
	var all []int
	for begin := 0; begin < len(load); begin += stretch {
		top := begin
		for s := begin + 1; s < min(begin+stretch, len(load)); s++ {
			if load[s] > load[top] {
				top = s
			}
		}
		all = append(all, top)
	}
	return all
}

// TestProbes compares what probes say of random ranges, while buffers are placed, with sums over the buffers that remain. Loads are often
// equal, and there are fewer and more sections than probes.
func TestProbes(t *testing.T) {
	var p probes
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 13))
		horizon := []int64{5, maxProbes, maxProbes + 1, 3*maxProbes + 40}[seed%4]
		problem := &dsa.Problem{Align: 1}
		for at := range horizon {
			dsatest.Add(problem, at, at+1, 1+rng.Int64N(3))
			dsatest.Add(problem, at, at+1+rng.Int64N(4), 1+rng.Int64N(3))
		}
		in := sections.New(problem)
		n := in.Sections()
		all := watched(in.Load, (n+maxProbes-1)/maxProbes)
		p.reset(in)
		if len(p.start) != len(all) || len(all) > maxProbes || p.most(0, int32(n)) != in.Bound {
			t.Fatalf("seed %d: %d probes for %d sections, and a load of %d, expected %d probes and %d",
				seed, len(p.start), n, p.most(0, int32(n)), len(all), in.Bound)
		}
		left := append([]int64(nil), in.Load...)
		for _, k := range rng.Perm(in.Len()) {
			p.place(in.Lo[k], in.Hi[k], in.Size[k])
			for s := in.Lo[k]; s < in.Hi[k]; s++ {
				left[s] -= in.Size[k]
			}
			a := rng.IntN(n)
			b := min(n, a+1+rng.IntN(12))
			want := int64(0)
			for _, s := range all {
				if a <= s && s < b {
					want = max(want, left[s])
				}
			}
			if got := p.most(int32(a), int32(b)); got != want {
				t.Fatalf("seed %d: %d units over the sections %d to %d of %d, expected %d", seed, got, a, b, n, want)
			}
		}
		if p.reset(in); p.most(0, int32(n)) != in.Bound {
			t.Fatalf("seed %d: buffers of the layout before count", seed)
		}
	}
}
