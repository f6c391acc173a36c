package layouts

import (
	"math"
	"math/rand/v2"

	"gm/internal/dsa"
	"gm/internal/models/shapes"
)

// Training returns about n buffers of a run of many iterations, at least one. Parameters live throughout the run, and the optimizer's state
// from the first iteration on. The length of the sequence differs between iterations.
func Training(n int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := Transformer{
		Transformer:   shapes.Transformer{Layers: 24, Hidden: 1024, FFN: 4096, Heads: 16, Groups: 16, Vocabulary: 50257, Family: shapes.GPT2},
		KeepGradients: true,
	}
	m.Layers = max(1, min(m.Layers, int64(n)/400))
	t := newTape()
	m.parameters(t, 1)
	for first := true; ; first = false {
		before := t.problem.Len()
		m.Tokens = 64 * (4 + rng.Int64N(60))
		m.iteration(t)
		if first {
			m.parameters(t, 2*single/half)
		}
		if took := t.problem.Len() - before; t.problem.Len()+took/2 > n {
			return t.finish()
		}
	}
}

// parameters requests a buffer for each weight, the given number of times as large.
func (m Transformer) parameters(t *tape, times int64) {
	request := func(numbers ...int64) {
		for _, n := range numbers {
			t.alloc(times * half * n)
		}
	}
	request(m.Vocabulary * m.Hidden)
	for range m.Layers {
		request(2*m.Hidden, 3*m.Hidden*m.Hidden, m.Hidden*m.Hidden, 2*m.Hidden, m.Hidden*m.FFN, m.Hidden*m.FFN)
	}
	request(2*m.Hidden, m.Vocabulary*m.Hidden)
}

// Random returns n buffers with random births and deaths. Their sizes, from 512 bytes to 64 MiB, are
// uniform in their logarithm. A third of the buffers live at the same time.
func Random(n int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &dsa.Problem{Align: align}
	for range n {
		a, b := rng.Int64N(2*int64(n)), rng.Int64N(2*int64(n))
		p.Start, p.End = append(p.Start, min(a, b)), append(p.End, max(a, b)+1)
		p.Size = append(p.Size, int64(math.Exp2(9+17*rng.Float64())))
	}
	return p
}
