package heuristic

import (
	"math/rand/v2"
	"testing"

	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/sections"
)

func TestPassesAllocateNothing(t *testing.T) {
	in := sections.New(dsatest.Training(rand.New(rand.NewPCG(7, 7)), 5, 100))
	var w Workspace
	out := make([]int64, in.Len())
	for _, m := range []Method{SkylineBy("TWA"), OrderedFit{By: "ZW"}} {
		if n := testing.AllocsPerRun(3, func() { m.Layout(in, &w, func(int64) bool { return false }, out) }); n > 0 {
			t.Errorf("%+v: %g allocations", m, n)
		}
	}
}

// BenchmarkPass measures a run of the skyline that reuses its memory: it should not allocate.
func BenchmarkPass(b *testing.B) {
	in := sections.New(dsatest.Training(rand.New(rand.NewPCG(7, 7)), 40, 250))
	var w Workspace
	out := make([]int64, in.Len())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := SkylineBy("A").Layout(in, &w, func(int64) bool { return false }, out); !ok {
			b.Fatal("gave up")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/buffer")
}
