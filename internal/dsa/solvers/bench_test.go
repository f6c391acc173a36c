package solvers

import (
	"math/rand/v2"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

// BenchmarkSolve reports the time, and how far the peak is above the bound.
func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(rng *rand.Rand) *dsa.Problem
	}{
		{"training-100k", func(rng *rand.Rand) *dsa.Problem { return dsatest.Training(rng, 100, 250) }},
		{"training-1M", func(rng *rand.Rand) *dsa.Problem { return dsatest.Training(rng, 1000, 250) }},
		{"random-1M", func(rng *rand.Rand) *dsa.Problem { return dsatest.Random(rng, 1_000_000, 1) }},
	} {
		p := c.build(rand.New(rand.NewPCG(7, 7)))
		for _, name := range []string{"skyline-A", "skyline-W", "best-fit", "auto"} {
			b.Run(c.name+"/"+name, func(b *testing.B) { benchmark(b, name, p) })
		}
	}
}

func BenchmarkPublic(b *testing.B) {
	for _, c := range public {
		b.Run(c.name, func(b *testing.B) { benchmark(b, "auto", loadPublic(b, c.name)) })
	}
}

func benchmark(b *testing.B, name string, p *dsa.Problem) {
	s := Solver(b, name)
	var l dsa.Layout
	for b.Loop() {
		var err error
		if l, err = s.Solve(b.Context(), p, dsa.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*(float64(l.Peak)/float64(l.Bound)-1), "%over")
}
