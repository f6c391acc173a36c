package dsa

import "math/bits"

// bitset is a set of small numbers that finds the neighbours of a number in a few steps. Each level has one bit per word of
// the level below, set when the word is not zero; the last level is one word.
type bitset [][]uint64

// newBitset returns an empty set for the numbers below n.
func newBitset(n int) bitset {
	var b bitset
	for {
		n = max(1, (n+63)/64)
		b = append(b, make([]uint64, n))
		if n == 1 {
			return b
		}
	}
}

func (b bitset) add(i int32) {
	for _, level := range b {
		level[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

func (b bitset) remove(i int32) {
	for _, level := range b {
		level[i/64] &^= 1 << (i % 64)
		if level[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// after returns the least number in the set that is greater than i, or -1.
func (b bitset) after(i int32) int32 {
	for up, level := range b {
		if word := level[i/64] >> (i % 64) >> 1 << 1 << (i % 64); word != 0 {
			i = i/64*64 + int32(bits.TrailingZeros64(word))
			for up--; up >= 0; up-- {
				i = i*64 + int32(bits.TrailingZeros64(b[up][i]))
			}
			return i
		}
		i /= 64
	}
	return -1
}

// before returns the greatest number in the set that is less than i, or -1.
func (b bitset) before(i int32) int32 {
	for up, level := range b {
		if word := level[i/64] & (1<<(i%64) - 1); word != 0 {
			i = i/64*64 + 63 - int32(bits.LeadingZeros64(word))
			for up--; up >= 0; up-- {
				i = i*64 + 63 - int32(bits.LeadingZeros64(b[up][i]))
			}
			return i
		}
		i /= 64
	}
	return -1
}
