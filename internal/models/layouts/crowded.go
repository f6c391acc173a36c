package layouts

import (
	"math/rand/v2"

	"gm/internal/dsa"
)

// Crowded returns up to n small buffers that fill a few moments to about the same height, so that little space can be wasted. For a few
// such problems no layout meets the load.
func Crowded(n int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := &dsa.Problem{Align: 1}
	load := make([]int64, 5+rng.IntN(5))
	height := 6 + rng.Int64N(8)
	for range 200 {
		start := rng.IntN(len(load))
		end := start + 1 + rng.IntN(min(len(load)-start, 4))
		room := height
		for _, l := range load[start:end] {
			room = min(room, height-l)
		}
		if room < 1 || p.Len() == n {
			continue
		}
		size := room
		if rng.IntN(2) == 0 {
			size = 1 + rng.Int64N(room)
		}
		size = min(size, 6)
		for t := start; t < end; t++ {
			load[t] += size
		}
		p.Start, p.End, p.Size = append(p.Start, int64(start)), append(p.End, int64(end)), append(p.Size, size)
	}
	return p
}

// piece is a rectangle of time and addresses.
type piece struct{ start, end, low, high int64 }

// Packed returns buffers that fill a rectangle of moments and bytes without a gap, in random order. The rectangle is cut the given number
// of times, and each piece is a buffer. A cut of a piece that is too small is left out.
func Packed(moments, height int64, cuts int, seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 3))
	pieces := []piece{{0, moments, 0, height}}
	for range cuts {
		k := rng.IntN(len(pieces))
		p, q := pieces[k], pieces[k]
		switch {
		case rng.IntN(2) == 0 && p.end-p.start > 1:
			p.end = p.start + 1 + rng.Int64N(p.end-p.start-1)
			q.start = p.end
		case p.high-p.low > 1:
			p.high = p.low + 1 + rng.Int64N(p.high-p.low-1)
			q.low = p.high
		default:
			continue
		}
		pieces[k] = p
		pieces = append(pieces, q)
	}
	problem := &dsa.Problem{Align: 1}
	for _, k := range rng.Perm(len(pieces)) {
		p := pieces[k]
		problem.Start, problem.End = append(problem.Start, p.start), append(problem.End, p.end)
		problem.Size = append(problem.Size, p.high-p.low)
	}
	return problem
}
