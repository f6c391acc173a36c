package sections

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Key is a word whose letters stand for properties of a buffer. Buffers are compared by the first property, then by the second, and so on;
// the greater comes first. The letters are those of google/minimalloc where it has them.
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

// Ranking turns keys into ranks. It reuses its memory.
type Ranking struct {
	column []float64
	bits   []uint64
	Order  []int32 // buffers by rank, the lowest first
	spare  []int32
	rank   []int32
}

// ByKey returns the rank of each buffer, valid until the next call. The buffer of the highest rank comes first; equal buffers are ranked by
// their start, the earliest first.
func (r *Ranking) ByKey(in *Instance, by Key) []int32 {
	r.start(in.Len())
	for i := len(by) - 1; i >= 0; i-- {
		in.Features.fill(r.column, by[i])
		r.sort()
	}
	return r.ranks()
}

// ByMix returns the rank of each buffer by a random mix of properties, the same mix for the same seed and round.
func (r *Ranking) ByMix(in *Instance, seed, round uint64) []int32 {
	rng := rand.New(rand.NewPCG(round, seed))
	m := mix{life: 2 * rng.Float64(), sections: 2 * rng.Float64(), size: 2 * rng.Float64()}
	m.load, m.noise, m.seed = sometimes(rng, -1, 3), sometimes(rng, -2.5, 0.5), rng.Uint64()
	r.start(in.Len())
	in.Features.fillMix(r.column, in.ID, in.Bound, m)
	r.sort()
	return r.ranks()
}

// sometimes returns, with equal probability, 0 or a number between 10^low and 10^high that is uniform in its logarithm.
func sometimes(rng *rand.Rand, low, high float64) float64 {
	power := math.Pow(10, low+(high-low)*rng.Float64())
	if rng.IntN(2) == 0 {
		return 0
	}
	return power
}

// start orders n buffers by start, the latest first.
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

// sort sorts the buffers by the column. It is stable: a radix sort from the last digit.
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

// sortDigit sorts the buffers by one digit; counts holds how often each value of it occurs.
func (r *Ranking) sortDigit(counts *[1 << digitBits]int32, shift int) {
	begin := int32(0)
	for value, count := range counts {
		if int(count) == len(r.Order) {
			return // all buffers have the same digit
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
