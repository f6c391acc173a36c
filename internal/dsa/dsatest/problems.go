// Package dsatest makes problems for tests.
package dsatest

import (
	"math/rand/v2"

	"gm/internal/dsa"
)

// Load returns the greatest load, by comparing all pairs of buffers.
func Load(p *dsa.Problem) int64 {
	top := int64(0)
	for i := range p.Size {
		sum := int64(0)
		for j := range p.Size {
			if p.Start[j] <= p.Start[i] && p.Start[i] < p.End[j] && p.Start[i] < p.End[i] {
				sum += (p.Size[j] + p.Align - 1) / p.Align * p.Align
			}
		}
		top = max(top, sum)
	}
	return top
}

// Random returns n buffers with lives and sizes of many lengths.
func Random(rng *rand.Rand, n int, align int64) *dsa.Problem {
	p := &dsa.Problem{Align: align}
	horizon := int64(1 + rng.IntN(2*n+1))
	for range n {
		start := rng.Int64N(horizon)
		life := rng.Int64N(1 + min(horizon, 1<<rng.IntN(20)))
		Add(p, start, start+life, rng.Int64N(1<<rng.IntN(16)))
	}
	return p
}

// Training returns buffers like those of training: parameters, then steps in which each layer has activations that live until
// its backward pass, and short-lived buffers.
func Training(rng *rand.Rand, steps, layers int) *dsa.Problem {
	p := &dsa.Problem{Align: 512}
	now := int64(0)
	end := int64(steps*layers*8 + layers)
	for range layers {
		Add(p, now, end, 1<<20+rng.Int64N(1<<22))
		now++
	}
	for range steps {
		first := now
		for layer := range int64(layers) {
			back := first + int64(layers)*4 + (int64(layers)-1-layer)*4
			Add(p, now, back+2, 1<<18+rng.Int64N(1<<20))
			Add(p, now+1, now+3, 1<<16+rng.Int64N(1<<20))
			Add(p, now+2, now+5, 1<<16+rng.Int64N(1<<18))
			Add(p, back, back+3, 1<<16+rng.Int64N(1<<20))
			now += 4
		}
		now += int64(layers) * 4
	}
	return p
}

// Packed returns buffers that fill a rectangle without a gap: the rectangle is cut repeatedly, and each piece is a buffer.
func Packed(rng *rand.Rand, end, height int64, cuts int) *dsa.Problem {
	p := &dsa.Problem{Align: 1}
	Add(p, 0, end, height)
	for range cuts {
		k := rng.IntN(p.Len())
		switch start, life := p.Start[k], p.End[k]-p.Start[k]; {
		case rng.IntN(2) == 0 && life > 1:
			Add(p, start, start+1+rng.Int64N(life-1), p.Size[k])
			p.Start[k] = p.End[p.Len()-1]
		case p.Size[k] > 1:
			Add(p, start, start+life, 1+rng.Int64N(p.Size[k]-1))
			p.Size[k] -= p.Size[p.Len()-1]
		}
	}
	return p
}

// Add adds a buffer to a problem.
func Add(p *dsa.Problem, start, end, size int64) {
	p.Start, p.End, p.Size = append(p.Start, start), append(p.End, end), append(p.Size, size)
}

// Feature is a set of optional properties of a problem.
type Feature int

const (
	WithAligns Feature = 1 << iota
	WithFixed
	WithTies
	WithPeriod
	WithAll = WithAligns | WithFixed | WithTies | WithPeriod
)

// Involved returns a random problem of up to n buffers with the given features.
func Involved(rng *rand.Rand, n int, with Feature, sizes int64) *dsa.Problem {
	for {
		p := &dsa.Problem{Align: []int64{1, 2, 8}[rng.IntN(3)]}
		horizon := int64(2 + rng.IntN(2*n+1))
		for range 1 + rng.IntN(n) {
			start := rng.Int64N(3*horizon) - horizon
			Add(p, start, start+rng.Int64N(1+min(horizon, 1<<rng.IntN(12))), p.Align*rng.Int64N(1+sizes))
		}
		if with&WithPeriod != 0 {
			p.Period = horizon
		}
		if with&WithAligns != 0 {
			p.Aligns = make([]int64, p.Len())
			for i := range p.Aligns {
				p.Aligns[i] = []int64{0, 1, 2, 4, 12, 16}[rng.IntN(6)]
			}
		}
		if with&WithTies != 0 {
			for range 1 + rng.IntN(p.Len()) {
				a, b := rng.Int32N(int32(p.Len())), rng.Int32N(int32(p.Len()))
				p.Ties = append(p.Ties, dsa.Tie{A: a, B: b, Delta: p.Align * []int64{0, 0, p.Size[a] / p.Align, rng.Int64N(9) - 4}[rng.IntN(4)]})
			}
		}
		if with&WithFixed != 0 {
			p.Fixed = make([]int64, p.Len())
			for i := range p.Fixed {
				if p.Fixed[i] = dsa.Free; rng.IntN(4) == 0 {
					p.Fixed[i] = p.Align * rng.Int64N(1+3*sizes)
				}
			}
		}
		if p.Validate() == nil {
			return p
		}
	}
}

// Crowded returns a problem in circular time with n buffers of much the same size and life, which leaves any layout gaps.
func Crowded(rng *rand.Rand, n int) *dsa.Problem {
	p := &dsa.Problem{Align: 256, Aligns: make([]int64, n), Period: 60}
	for i := range p.Aligns {
		start := rng.Int64N(p.Period)
		Add(p, start, start+5+rng.Int64N(20), 256*(20+rng.Int64N(60)))
		p.Aligns[i] = 512 << rng.IntN(4)
	}
	return p
}

// Together reports whether two buffers live at the same time, by comparing all moments. Sizes are multiples of the alignment.
func Together(p *dsa.Problem, i, j int) bool {
	for t := p.Start[i]; t < p.End[i]; t++ {
		for u := p.Start[j]; u < p.End[j]; u++ {
			if t == u || p.Period > 0 && (t-u)%p.Period == 0 {
				return true
			}
		}
	}
	return false
}
