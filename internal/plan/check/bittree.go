package check

import "math/bits"

// bitTree is a set of small numbers that finds neighbours: a bitmap, above it a bitmap of its words that are not 0,
// and so on up to a single word.
type bitTree struct {
	levels [][]uint64
}

// newBitTree returns an empty set for numbers below n.
func newBitTree(n int) *bitTree {
	t := &bitTree{}
	for {
		n = (n + 63) / 64
		t.levels = append(t.levels, make([]uint64, max(n, 1)))
		if n <= 1 {
			return t
		}
	}
}

func (t *bitTree) set(i int) {
	for _, level := range t.levels {
		level[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

func (t *bitTree) clear(i int) {
	for _, level := range t.levels {
		level[i/64] &^= 1 << (i % 64)
		if level[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// before returns the greatest number of the set below i, or -1.
func (t *bitTree) before(i int) int {
	for l, level := range t.levels {
		if below := level[i/64] & (1<<(i%64) - 1); below != 0 {
			return t.descend(l, i/64*64+63-bits.LeadingZeros64(below), func(w uint64) int { return 63 - bits.LeadingZeros64(w) })
		}
		i /= 64
	}
	return -1
}

// after returns the least number of the set above i, or -1.
func (t *bitTree) after(i int) int {
	for l, level := range t.levels {
		if above := level[i/64] &^ (1<<(i%64)<<1 - 1); above != 0 {
			return t.descend(l, i/64*64+bits.TrailingZeros64(above), bits.TrailingZeros64)
		}
		i /= 64
	}
	return -1
}

// descend returns the number below bit i of a level that pick chooses in each word on the way down.
func (t *bitTree) descend(l, i int, pick func(word uint64) int) int {
	for l--; l >= 0; l-- {
		i = i*64 + pick(t.levels[l][i])
	}
	return i
}
