package layouts

import (
	"math"
	"math/rand/v2"

	"gm/internal/dsa"
)

// The rectangle that buffers of [Planted] lie in, like that of google/minimalloc's instances: so many moments and units of 1024 bytes.
const (
	plantedMoments = 1024
	plantedHeight  = 1024
	plantedUnit    = 1024 // bytes

	PlantedCapacity = plantedHeight * plantedUnit // bytes
)

// Planted is a problem that is known to fit in PlantedCapacity, with the layout that shows it. Little space is left, and heuristics do not
// find a layout: it resembles the instances of google/minimalloc.
type Planted struct{ pieces []piece }

// Problem returns the buffers in random order.
func (l *Planted) Problem(seed uint64) *dsa.Problem {
	rng := rand.New(rand.NewPCG(seed, 4))
	p := &dsa.Problem{Align: 1}
	for _, k := range rng.Perm(len(l.pieces)) {
		q := l.pieces[k]
		p.Start, p.End = append(p.Start, q.start*plantedUnit), append(p.End, q.end*plantedUnit)
		p.Size = append(p.Size, (q.high-q.low)*plantedUnit)
	}
	return p
}

// PlantedOf returns the layout of a problem whose sizes, offsets and times are multiples of 1024 and below PlantedCapacity.
func PlantedOf(p *dsa.Problem, offsets []int64) *Planted {
	l := &Planted{}
	for i, size := range p.Size {
		low := offsets[i] / plantedUnit
		l.pieces = append(l.pieces, piece{p.Start[i] / plantedUnit, p.End[i] / plantedUnit, low, low + size/plantedUnit})
	}
	return l
}

// Cut returns some 120 to 320 buffers that a full rectangle was cut into.
func Cut(seed uint64) *Planted {
	rng := rand.New(rand.NewPCG(seed, 5))
	l := &Planted{[]piece{{0, plantedMoments, 0, plantedHeight}}}
	n := 120 + rng.IntN(200)
	large := rng.Float64()             // 0: all pieces are cut equally often; 1: by their area
	across := 0.35 + 0.3*rng.Float64() // the share of cuts in time
	margin := 0.5 * rng.Float64() * rng.Float64()
	for tries := 0; len(l.pieces) < n && tries < 100*n; tries++ {
		k := rng.IntN(len(l.pieces))
		p := l.pieces[k]
		area := float64((p.end-p.start)*(p.high-p.low)) / (plantedMoments * plantedHeight)
		if rng.Float64() < math.Pow(min(1, 4*area*float64(len(l.pieces))/float64(n)), large) {
			l.cut(rng, k, rng.Float64() < across, margin)
		}
	}
	l.loosen(rng)
	return l
}

// cut cuts a piece in time or in height, not nearer to its ends than a share of its extent.
func (l *Planted) cut(rng *rand.Rand, k int, inTime bool, margin float64) {
	p, q := l.pieces[k], l.pieces[k]
	if inTime {
		p.end = between(rng, p.start, p.end, margin)
		q.start = p.end
	} else {
		p.high = between(rng, p.low, p.high, margin)
		q.low = p.high
	}
	if !p.empty() && !q.empty() {
		l.pieces[k] = p
		l.pieces = append(l.pieces, q)
	}
}

// between returns a random position between two.
func between(rng *rand.Rand, from, to int64, margin float64) int64 {
	share := margin + (1-2*margin)*rng.Float64()
	return from + int64(math.Round(share*float64(to-from)))
}

func (p piece) empty() bool { return p.start >= p.end || p.low >= p.high }

func (p piece) meets(q piece) bool {
	return p.start < q.end && q.start < p.end && p.low < q.high && q.low < p.high
}

// Heaped returns up to 450 buffers that were dropped, one upon the other. In some, a few of them grew until they touched the next.
func Heaped(seed uint64) *Planted {
	rng := rand.New(rand.NewPCG(seed, 6))
	l := &Planted{}
	n := 80 + rng.IntN(370)
	// Extents are uniform, or uniform in their logarithms.
	logarithmic := rng.IntN(2) == 0
	share := 1.5 / math.Sqrt(float64(n)) // a square of that extent fills more than its part
	skew := math.Exp(1.5 * (rng.Float64() - 0.5))
	extent := func(mean float64) int64 {
		if logarithmic {
			return 1 + int64(mean*math.Exp(4*(rng.Float64()-0.7)))
		}
		return 1 + int64(mean*(0.4+1.2*rng.Float64()))
	}
	for range 40 * n {
		if len(l.pieces) == n {
			break
		}
		life := min(extent(share*skew*plantedMoments), plantedMoments)
		start := max(0, min(plantedMoments-life, rng.Int64N(plantedMoments+life)-life))
		l.drop(piece{start, start + life, 0, min(extent(share/skew*plantedHeight), plantedHeight)})
	}
	if rng.IntN(3) == 0 {
		l.grow(rng, 0.3*rng.Float64())
	}
	l.loosen(rng)
	return l
}

// drop adds a piece at the least height at which it fits, if there is one.
func (l *Planted) drop(p piece) {
	for moved := true; moved; {
		moved = false
		for _, q := range l.pieces {
			if p.meets(q) {
				p.low, p.high = q.high, p.high-p.low+q.high
				moved = true
			}
		}
	}
	if p.high <= plantedHeight {
		l.pieces = append(l.pieces, p)
	}
}

// grow extends a share of the pieces, in random order, as far as others let them.
func (l *Planted) grow(rng *rand.Rand, share float64) {
	for _, k := range rng.Perm(len(l.pieces)) {
		if rng.Float64() > share {
			continue
		}
		for _, side := range rng.Perm(4) {
			l.extend(k, side)
		}
	}
}

// extend moves a side of a piece to the next piece or to the end of the rectangle.
func (l *Planted) extend(k, side int) {
	p := l.pieces[k]
	reach := p
	switch side {
	case 0:
		reach.start, reach.end = 0, p.start
	case 1:
		reach.start, reach.end = p.end, plantedMoments
	case 2:
		reach.low, reach.high = 0, p.low
	default:
		reach.low, reach.high = p.high, plantedHeight
	}
	for _, q := range l.pieces {
		if !reach.meets(q) {
			continue
		}
		switch side {
		case 0:
			reach.start = q.end
		case 1:
			reach.end = q.start
		case 2:
			reach.low = q.high
		default:
			reach.high = q.low
		}
	}
	l.pieces[k] = piece{min(p.start, reach.start), max(p.end, reach.end), min(p.low, reach.low), max(p.high, reach.high)}
	if reach.empty() {
		l.pieces[k] = p
	}
}

// loosen shortens or lowers some of the pieces, and removes a few.
func (l *Planted) loosen(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		return
	}
	share, amount := 0.3*rng.Float64()*rng.Float64(), 0.3*rng.Float64()
	kept := l.pieces[:0]
	for _, p := range l.pieces {
		if rng.Float64() < share {
			less := amount * rng.Float64()
			switch rng.IntN(3) {
			case 0:
				p.end -= int64(less * float64(p.end-p.start))
			case 1:
				p.start += int64(less * float64(p.end-p.start))
			default:
				p.high -= int64(less * float64(p.high-p.low))
			}
		}
		if rng.Float64() > share/10 {
			kept = append(kept, p)
		}
	}
	l.pieces = kept
}
