package sections

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A key is a word of letters, each a property of a buffer: buffers are compared by the first, then by the second,
// and the greater goes first. The letters are those of google/minimalloc where it has them.
//
//	W  length of the life
//	V  number of sections lived in
//	Z  size
//	A  W x Z, the area
//	S  V x Z, the area in sections
//	T  the greatest load during the life
//	L  first section
//	U  section after the last
type Key string

// Ranking turns keys into ranks, in memory that is kept.
type Ranking struct {
	column []float64
	bits   []uint64
	Order  []int32 // buffers by rank
	spare  []int32
	rank   []int32
}

// ByKey ranks the buffers of in: the greater the rank, the earlier its turn. Equal ones go by their start.
func (r *Ranking) ByKey(in *Instance, by Key) []int32 {
	r.start(in.Len())
	for i := len(by) - 1; i >= 0; i-- {
		in.Features.fill(r.column, by[i])
		r.sort()
	}
	return r.ranks()
}

// ByMix ranks the buffers of in by a random mix of their properties, the same for the same seed and round.
func (r *Ranking) ByMix(in *Instance, seed, round uint64) []int32 {
	rng := rand.New(rand.NewPCG(round, seed))
	m := mix{life: 2 * rng.Float64(), sections: 2 * rng.Float64(), size: 2 * rng.Float64()}
	m.load, m.noise, m.seed = sometimes(rng, -1, 3), sometimes(rng, -2.5, 0.5), rng.Uint64()
	r.start(in.Len())
	in.Features.fillMix(r.column, in.ID, in.Bound, m)
	r.sort()
	return r.ranks()
}

// sometimes returns 0 or, as often, a number between 10^low and 10^high, uniform in its logarithm.
func sometimes(rng *rand.Rand, low, high float64) float64 {
	power := math.Pow(10, low+(high-low)*rng.Float64())
	if rng.IntN(2) == 0 {
		return 0
	}
	return power
}

// start orders n buffers by start, the last first.
func (r *Ranking) start(n int) {
	r.column, r.bits = slices.Grow(r.column[:0], n)[:n], slices.Grow(r.bits[:0], n)[:n]
	r.Order, r.spare, r.rank = slices.Grow(r.Order[:0], n)[:n], slices.Grow(r.spare[:0], n)[:n], slices.Grow(r.rank[:0], n)[:n]
	for i := range r.Order {
		r.Order[i] = int32(n - 1 - i)
	}
}

const (
	digitBits = 11
	digits    = (64 + digitBits - 1) / digitBits
)

// sort orders the buffers by the column and leaves equal ones as they are: a radix sort, from the last digit.
func (r *Ranking) sort() {
	var counts [digits][1 << digitBits]int32
	for k, value := range r.column {
		bits := math.Float64bits(value)
		if bits>>63 == 1 {
			bits = ^bits
		} else {
			bits |= 1 << 63
		}
		r.bits[k] = bits
		for d := range counts {
			counts[d][bits>>(digitBits*d)&(1<<digitBits-1)]++
		}
	}
	for d := range counts {
		r.sortDigit(&counts[d], digitBits*d)
	}
}

// sortDigit orders the buffers by one digit, whose values occur as often as counts says.
func (r *Ranking) sortDigit(counts *[1 << digitBits]int32, shift int) {
	begin := int32(0)
	for value, count := range counts {
		if int(count) == len(r.Order) {
			return // all the same
		}
		counts[value] = begin
		begin += count
	}
	for _, k := range r.Order {
		value := r.bits[k] >> shift & (1<<digitBits - 1)
		r.spare[counts[value]] = k
		counts[value]++
	}
	r.Order, r.spare = r.spare, r.Order
}

// ranks returns the place of each buffer in the order.
func (r *Ranking) ranks() []int32 {
	for i, k := range r.Order {
		r.rank[k] = int32(i)
	}
	return r.rank
}
