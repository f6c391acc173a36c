package relax

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSolver has programs whose optimum is known by hand.
func TestSolver(t *testing.T) {
	type row struct {
		right float64
		terms []term
	}
	for name, test := range map[string]struct {
		cost []float64
		rows []row
		want float64
	}{
		"nothing to do":  {[]float64{1, 2}, []row{{0, []term{{0, 1}, {1, 1}}}}, 0},
		"the cheaper":    {[]float64{1, 2}, []row{{1, []term{{0, 1}, {1, 1}}}}, 1},
		"both":           {[]float64{1, 2}, []row{{1.5, []term{{0, 1}, {1, 1}}}}, 2},
		"one for two":    {[]float64{3, 2, 2}, []row{{1, []term{{0, 1}, {1, 1}}}, {1, []term{{0, 1}, {2, 1}}}}, 3},
		"a third of all": {[]float64{1, 1, 1}, []row{{1, []term{{0, 1}, {1, 1}}}, {1, []term{{1, 1}, {2, 1}}}, {1, []term{{0, 1}, {2, 1}}}}, 1.5},
		"with a loss":    {[]float64{1, 10}, []row{{0, []term{{0, 1}, {1, -2}}}, {0.3, []term{{1, 1}}}}, 3.6},
		"in parts":       {[]float64{1, 10}, []row{{5, []term{{0, 4}, {1, 2}}}}, 6},
	} {
		p := &program{}
		for _, c := range test.cost {
			p.variable(c)
		}
		for _, r := range test.rows {
			p.atLeast(r.right, r.terms...)
		}
		if got := p.least(20_000, 0); got > test.want || got < test.want-0.001*max(1, test.want) {
			t.Errorf("%s: at least %v, want %v", name, got, test.want)
		}
	}
}

// TestBoundIsValid has random programs with a point that keeps to their rows: whatever dual values there are, none proves more than its cost.
func TestBoundIsValid(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		p, x, cost := &program{}, []float64{}, 0.0
		for range 1 + r.IntN(20) {
			x = append(x, float64(r.IntN(2)))
			c := 10 * r.Float64()
			p.variable(c)
			cost += c * x[len(x)-1]
		}
		for range 1 + r.IntN(20) {
			var terms []term
			sum := 0.0
			for j := range x {
				if r.IntN(3) == 0 {
					terms = append(terms, term{int32(j), math.Round(10*r.Float64() - 4)})
					sum += terms[len(terms)-1].value * x[j]
				}
			}
			p.atLeast(sum, terms...)
		}
		for _, rounds := range []int{50, 1000} {
			if got := p.least(rounds, 0); got > cost {
				t.Fatalf("seed %d: at least %v, where a point costs %v", seed, got, cost)
			}
		}
	}
}
