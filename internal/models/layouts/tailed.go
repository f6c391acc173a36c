package layouts

import (
	"math"
	"math/rand/v2"

	"gm/internal/dsa"
)

// tail is the exponent of HeavyTailed's lives.
const tail = 0.7

// HeavyTailed returns n buffers, one born at each moment, of up to 10,000 bytes. Their lives are Pareto's: of a few moments for most, a
// thousand times as long for a few.
func HeavyTailed(n int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := &dsa.Problem{Align: 1}
	for start := range int64(n) {
		life := 1 + int64(math.Min(math.Pow(1-rng.Float64(), -1/tail), 1<<50))%int64(n)
		p.Start, p.End, p.Size = append(p.Start, start), append(p.End, start+life), append(p.Size, 1+rng.Int64N(10_000))
	}
	return p
}
