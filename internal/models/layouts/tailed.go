package layouts

import (
	"math"
	"math/rand/v2"

	"gm/internal/dsa"
)

// tail is the exponent of the distribution of lives in HeavyTailed.
const tail = 0.7

// HeavyTailed returns n buffers of up to 10,000 bytes, one born at each moment. Their lives have a Pareto distribution: most last a few
// moments, a few a thousand times as long.
func HeavyTailed(n int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := &dsa.Problem{Align: 1}
	for start := range int64(n) {
		life := 1 + int64(math.Min(math.Pow(1-rng.Float64(), -1/tail), 1<<50))%int64(n)
		p.Start, p.End, p.Size = append(p.Start, start), append(p.End, start+life), append(p.Size, 1+rng.Int64N(10_000))
	}
	return p
}
