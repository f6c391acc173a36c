package layouts

import (
	"math/rand/v2"
	"slices"
)

// Mutated returns a problem like the given one, in which one to three things changed. Another problem may be merged into it.
func (l *Planted) Mutated(other *Planted, seed uint64) *Planted {
	rng := rand.New(rand.NewPCG(seed, 7))
	m := &Planted{slices.Clone(l.pieces)}
	changes := []func(){
		func() { m.mirror() },
		func() { m.rotate(rng.Int64N(plantedMoments)) },
		func() { m.merge(other, rng.Int64N(plantedMoments)) },
		func() { m.scale(rng) },
		func() { m.loosen(rng); m.grow(rng, 0.5*rng.Float64()) },
		func() { m.recut(rng, 1+rng.IntN(1+len(m.pieces)/8)) },
	}
	for _, k := range rng.Perm(len(changes))[:1+rng.IntN(3)] {
		changes[k]()
	}
	return m
}

// mirror reverses time.
func (l *Planted) mirror() {
	for k, p := range l.pieces {
		l.pieces[k].start, l.pieces[k].end = plantedMoments-p.end, plantedMoments-p.start
	}
}

// rotate shifts time. What is beyond the end goes to the beginning; a piece across the end becomes two.
func (l *Planted) rotate(by int64) {
	for k, p := range l.pieces {
		p.start, p.end = p.start+by, p.end+by
		wrapped := piece{max(0, p.start-plantedMoments), p.end - plantedMoments, p.low, p.high}
		p.end = min(p.end, plantedMoments)
		switch {
		case p.empty():
			l.pieces[k] = wrapped
		case wrapped.empty():
			l.pieces[k] = p
		default:
			l.pieces[k] = p
			l.pieces = append(l.pieces, wrapped)
		}
	}
}

// merge replaces what begins after a moment by pieces of another layout, cut off where those before are in the way.
func (l *Planted) merge(other *Planted, moment int64) {
	l.pieces = slices.DeleteFunc(l.pieces, func(p piece) bool { return p.start > moment })
	before := l.pieces
	for _, q := range other.pieces {
		q.start = max(q.start, moment+1)
		for _, p := range before {
			if p.meets(q) {
				q.start = p.end
			}
		}
		if !q.empty() {
			l.pieces = append(l.pieces, q)
		}
	}
}

// scale stretches parts of time and of the height, and compresses the rest.
func (l *Planted) scale(rng *rand.Rand) {
	moment, height := stretched(rng, plantedMoments), stretched(rng, plantedHeight)
	kept := l.pieces[:0]
	for _, p := range l.pieces {
		if q := (piece{moment[p.start], moment[p.end], height[p.low], height[p.high]}); !q.empty() {
			kept = append(kept, q)
		}
	}
	l.pieces = kept
}

// stretched returns where each position of [0, n] comes to lie.
func stretched(rng *rand.Rand, n int) []int64 {
	weights, sum, factor := make([]float64, n), 0.0, 1.0
	for i := range weights {
		if i%(n/8) == 0 {
			factor = 0.6 + 0.8*rng.Float64()
		}
		weights[i] = factor
		sum += factor
	}
	to, at := make([]int64, n+1), 0.0
	for i, w := range weights {
		at += w
		to[i+1] = int64(at/sum*float64(n) + 0.5)
	}
	return to
}

// recut cuts some pieces in two, and joins as many pairs where one is as long as the other, or as high, and touches it.
func (l *Planted) recut(rng *rand.Rand, times int) {
	for range times {
		l.cut(rng, rng.IntN(len(l.pieces)), rng.IntN(2) == 0, 0.1)
	}
	joined := 0
	for i := 0; i < len(l.pieces) && joined < times; i++ {
		for j := range l.pieces {
			p, q := l.pieces[i], l.pieces[j]
			above := p.start == q.start && p.end == q.end && p.high == q.low
			after := p.low == q.low && p.high == q.high && p.end == q.start
			if above || after {
				l.pieces[i] = piece{p.start, q.end, p.low, q.high}
				l.pieces = slices.Delete(l.pieces, j, j+1)
				joined++
				break
			}
		}
	}
}
