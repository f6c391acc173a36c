package dsa

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkSolve reports, beside the time, how far the peak is over the bound.
func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(rng *rand.Rand) *Problem
	}{
		{"training-100k", func(rng *rand.Rand) *Problem { return training(rng, 100, 250) }},
		{"training-1M", func(rng *rand.Rand) *Problem { return training(rng, 1000, 250) }},
		{"random-1M", func(rng *rand.Rand) *Problem { return random(rng, 1_000_000, 1) }},
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

func benchmark(b *testing.B, name string, p *Problem) {
	s := solver(b, name)
	var l Layout
	for b.Loop() {
		var err error
		if l, err = s.Solve(b.Context(), p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*(float64(l.Peak)/float64(l.Bound)-1), "%over")
}

// BenchmarkPass is one run of the skyline with its memory warm: it should allocate nothing.
func BenchmarkPass(b *testing.B) {
	in := newInstance(training(rand.New(rand.NewPCG(7, 7)), 40, 250))
	var w workspace
	out := make([]int64, in.len())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := (skylineBy{"A"}).layout(in, &w, func(int64) bool { return false }, out); !ok {
			b.Fatal("gave up")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.len()), "ns/buffer")
}
