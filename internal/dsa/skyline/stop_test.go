package skyline_test

import (
	"math/rand/v2"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/sections"
	"gm/internal/dsa/skyline"
)

// TestStop stops a layout at each of its bounds: nothing is asked afterwards, and there is no layout.
func TestStop(t *testing.T) {
	var sky skyline.Skyline
	var ranking sections.Ranking
	for seed := range uint64(20) {
		p := shortLives(rand.New(rand.NewPCG(seed, 14)))
		in := sections.New(p)
		rank := ranking.ByKey(in, "W")
		_, bounds := plain(in, byLife(in, p))
		for last := range bounds {
			asked := 0
			stop := func(bound int64) bool {
				asked++
				return bound >= bounds[last]
			}
			if peak, ok := sky.Run(in, rank, stop, make([]int64, in.Len())); ok || peak != 0 || asked != last+1 {
				t.Fatalf("seed %d: %v, a peak of %d after %d questions, expected none after %d", seed, ok, peak, asked, last+1)
			}
		}
	}
}

// TestStopIsAsked lays out buffers that do not raise the peak: stop is still asked, after each sections.StopEvery of them.
func TestStopIsAsked(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for i := range int64(5*sections.StopEvery + 1) {
		dsatest.Add(p, i, i+1, 7)
	}
	in := sections.New(p)
	var ranking sections.Ranking
	var sky skyline.Skyline
	asked := 0
	stop := func(bound int64) bool {
		asked++
		return bound != 7
	}
	if peak, ok := sky.Run(in, ranking.ByKey(in, "W"), stop, make([]int64, in.Len())); !ok || peak != 7 || asked != 6 {
		t.Errorf("%v, a peak of %d after %d questions, expected 7 after 6", ok, peak, asked)
	}
}

// TestMemoryIsReused checks that no run but the first allocates, for any number of buffers up to that of the first.
func TestMemoryIsReused(t *testing.T) {
	var ranking sections.Ranking
	for n := 1; n < 40; n++ {
		in := sections.New(dsatest.Random(rand.New(rand.NewPCG(uint64(n), 15)), n, 1))
		var sky skyline.Skyline
		rank, out := ranking.ByKey(in, "W"), make([]int64, in.Len())
		if got := testing.AllocsPerRun(2, func() { sky.Run(in, rank, func(int64) bool { return false }, out) }); got > 0 {
			t.Errorf("%g allocations for %d buffers", got, n)
		}
	}
}
