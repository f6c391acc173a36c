package dsa

import (
	"cmp"
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
type key string

// ranking turns a key into ranks, in memory that is kept.
type ranking struct {
	columns [3][]float64
	order   []int32
	rank    []int32
	of      *instance // whose peak loads are in load
	load    []float64
	tree    []int64
}

// byKey ranks the buffers of in by key: the greater the rank, the earlier its turn. Equal ones go by their start.
func (r *ranking) byKey(in *instance, by key) []int32 {
	for i := range by {
		r.columns[i] = resize(r.columns[i], in.len())
		r.fill(r.columns[i], in, by[i])
	}
	return r.byColumns(in.len(), len(by))
}

// byWeights ranks by a mix of the properties drawn from rng: weights for the logarithms of W, V and Z, mostly none for
// T, and some noise.
func (r *ranking) byWeights(in *instance, rng *rand.Rand) []int32 {
	life, sections, size := 2*rng.Float64(), 2*rng.Float64(), 2*rng.Float64()
	load, noise := sometimes(rng, -1, 3), sometimes(rng, -2.5, 0.5)
	loads := r.peakLoads(in)
	r.columns[0] = resize(r.columns[0], in.len())
	for k := range r.columns[0] {
		r.columns[0][k] = life*math.Log(float64(in.life[k])) + sections*math.Log(float64(in.hi[k]-in.lo[k])) +
			size*math.Log(float64(in.size[k])) + load*loads[k]/float64(in.bound) + noise*rng.NormFloat64()
	}
	return r.byColumns(in.len(), 1)
}

// sometimes returns 0 or, as often, a number between 10^low and 10^high, uniform in its logarithm.
func sometimes(rng *rand.Rand, low, high float64) float64 {
	power := math.Pow(10, low+(high-low)*rng.Float64())
	if rng.IntN(2) == 0 {
		return 0
	}
	return power
}

func (r *ranking) fill(column []float64, in *instance, letter byte) {
	for k := range column {
		life, sections, size := float64(in.life[k]), float64(in.hi[k]-in.lo[k]), float64(in.size[k])
		switch letter {
		case 'W':
			column[k] = life
		case 'V':
			column[k] = sections
		case 'Z':
			column[k] = size
		case 'A':
			column[k] = life * size
		case 'S':
			column[k] = sections * size
		}
	}
	if letter == 'T' {
		copy(column, r.peakLoads(in))
	}
}

// byColumns ranks n buffers by the first so many columns.
func (r *ranking) byColumns(n, columns int) []int32 {
	r.order, r.rank = resize(r.order, n), resize(r.rank, n)
	for k := range r.order {
		r.order[k] = int32(k)
	}
	slices.SortFunc(r.order, func(a, b int32) int {
		for _, column := range r.columns[:columns] {
			if c := cmp.Compare(column[a], column[b]); c != 0 {
				return c
			}
		}
		return cmp.Compare(b, a)
	})
	for rank, k := range r.order {
		r.rank[k] = int32(rank)
	}
	return r.rank
}

// peakLoads returns, for each buffer, the greatest load of the sections it lives in.
func (r *ranking) peakLoads(in *instance) []float64 {
	if r.of == in {
		return r.load
	}
	n := in.sections()
	r.tree = resize(r.tree, 2*n) // node i covers what 2i and 2i+1 cover; the leaves are n to 2n
	copy(r.tree[n:], in.load)
	for i := n - 1; i > 0; i-- {
		r.tree[i] = max(r.tree[2*i], r.tree[2*i+1])
	}
	r.load = resize(r.load, in.len())
	for k := range r.load {
		top := int64(0)
		for a, b := int(in.lo[k])+n, int(in.hi[k])+n; a < b; a, b = a/2, b/2 {
			if a&1 == 1 {
				top = max(top, r.tree[a])
				a++
			}
			if b&1 == 1 {
				b--
				top = max(top, r.tree[b])
			}
		}
		r.load[k] = float64(top)
	}
	r.of = in
	return r.load
}

// resize returns a slice of n elements, in the memory of s when that is enough.
func resize[T any](s []T, n int) []T {
	return slices.Grow(s[:0], n)[:n]
}
