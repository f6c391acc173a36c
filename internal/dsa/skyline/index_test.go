package skyline

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"gm/internal/dsa/sections"
)

// TestIndex compares what the index finds in random ranges, while buffers are taken out, with a search of all buffers.
func TestIndex(t *testing.T) {
	var x index
	for n := 1; n < 70; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 16))
		in, rank := &sections.Instance{}, make([]int32, n)
		for k, r := range rng.Perm(n) {
			rank[k] = int32(r)
			in.Hi = append(in.Hi, 1+rng.Int32N(20))
		}
		x.reset(in, rank)
		gone := make([]bool, n)
		for _, k := range rng.Perm(n) {
			from := rng.IntN(n + 1)
			to, end := from+rng.IntN(n+1-from), rng.Int32N(21)
			want := int32(-1)
			for k := from; k < to; k++ {
				if !gone[k] && in.Hi[k] <= end && (want < 0 || rank[k] > rank[want]) {
					want = int32(k)
				}
			}
			if got := x.best(int32(from), int32(to), end); got != want {
				t.Fatalf("%d buffers: %d is the best of [%d, %d) up to %d, expected %d", n, got, from, to, end, want)
			}
			x.remove(int32(k))
			gone[k] = true
		}
	}
}

// TestIndexGoesStraightDown searches where every buffer fits: the index looks at two nodes of a level, in a tree that is no higher than it must be.
func TestIndexGoesStraightDown(t *testing.T) {
	for n := 1; n < 70; n++ {
		var x index
		rng := rand.New(rand.NewPCG(uint64(n), 17))
		in, rank := &sections.Instance{Hi: make([]int32, n)}, make([]int32, n)
		for k, r := range rng.Perm(n) {
			rank[k] = int32(r)
		}
		x.reset(in, rank)
		levels := int64(bits.Len(uint(n - 1)))
		for r := n - 1; r >= 0; r-- {
			k := x.best(0, x.leaves, 1)
			if rank[k] != int32(r) {
				t.Fatalf("%d buffers: rank %d comes when %d is the highest", n, rank[k], r)
			}
			x.remove(k)
		}
		if most := int64(n) * (2*levels + 1); x.visits > most {
			t.Errorf("%d buffers: %d visits for all of them, expected at most %d", n, x.visits, most)
		}
	}
}
