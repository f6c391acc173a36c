package dsa

import "math/rand/v2"

// load returns the greatest load, the slow way.
func load(p *Problem) int64 {
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

// random returns n buffers with lives and sizes of many lengths.
func random(rng *rand.Rand, n int, align int64) *Problem {
	p := &Problem{Align: align}
	horizon := int64(1 + rng.IntN(2*n+1))
	for range n {
		start := rng.Int64N(horizon)
		life := rng.Int64N(1 + min(horizon, 1<<rng.IntN(20)))
		p.add(start, start+life, rng.Int64N(1<<rng.IntN(16)))
	}
	return p
}

// training returns buffers like those of training: parameters, then steps of layers with activations that live until
// the layer's turn comes again, backwards, and short-lived ones.
func training(rng *rand.Rand, steps, layers int) *Problem {
	p := &Problem{Align: 512}
	now := int64(0)
	end := int64(steps*layers*8 + layers)
	for range layers {
		p.add(now, end, 1<<20+rng.Int64N(1<<22))
		now++
	}
	for range steps {
		first := now
		for layer := range int64(layers) {
			back := first + int64(layers)*4 + (int64(layers)-1-layer)*4
			p.add(now, back+2, 1<<18+rng.Int64N(1<<20))
			p.add(now+1, now+3, 1<<16+rng.Int64N(1<<20))
			p.add(now+2, now+5, 1<<16+rng.Int64N(1<<18))
			p.add(back, back+3, 1<<16+rng.Int64N(1<<20))
			now += 4
		}
		now += int64(layers) * 4
	}
	return p
}

// packed returns buffers that fill a rectangle without a gap: it is cut again and again, and each piece is a buffer.
func packed(rng *rand.Rand, end, height int64, cuts int) *Problem {
	p := &Problem{Align: 1}
	p.add(0, end, height)
	for range cuts {
		k := rng.IntN(p.Len())
		switch start, life := p.Start[k], p.End[k]-p.Start[k]; {
		case rng.IntN(2) == 0 && life > 1:
			p.add(start, start+1+rng.Int64N(life-1), p.Size[k])
			p.Start[k] = p.End[p.Len()-1]
		case p.Size[k] > 1:
			p.add(start, start+life, 1+rng.Int64N(p.Size[k]-1))
			p.Size[k] -= p.Size[p.Len()-1]
		}
	}
	return p
}

func (p *Problem) add(start, end, size int64) {
	p.Start, p.End, p.Size = append(p.Start, start), append(p.End, end), append(p.Size, size)
}
