// Package bitset holds sets of small numbers that find the neighbours of a number in a few steps, for the checkers of layouts.
package bitset

import "math/bits"

// Set is a set of small numbers. Each level has one bit per word of the level below, set when the word is not zero; the last level is
// one word.
type Set [][]uint64

// New returns an empty set for the numbers below n.
func New(n int) Set {
	var b Set
	for {
		n = max(1, (n+63)/64)
		b = append(b, make([]uint64, n))
		if n == 1 {
			return b
		}
	}
}

// Add adds i.
func (b Set) Add(i int) {
	for _, level := range b {
		level[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

// Remove removes i, which may be absent.
func (b Set) Remove(i int) {
	for _, level := range b {
		level[i/64] &^= 1 << (i % 64)
		if level[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// After returns the least number in the set that is greater than i, or -1.
func (b Set) After(i int) int {
	for up, level := range b {
		if word := level[i/64] >> (i % 64) >> 1 << 1 << (i % 64); word != 0 {
			i = i/64*64 + bits.TrailingZeros64(word)
			for up--; up >= 0; up-- {
				i = i*64 + bits.TrailingZeros64(b[up][i])
			}
			return i
		}
		i /= 64
	}
	return -1
}

// Before returns the greatest number in the set that is less than i, or -1.
func (b Set) Before(i int) int {
	for up, level := range b {
		if word := level[i/64] & (1<<(i%64) - 1); word != 0 {
			i = i/64*64 + 63 - bits.LeadingZeros64(word)
			for up--; up >= 0; up-- {
				i = i*64 + 63 - bits.LeadingZeros64(b[up][i])
			}
			return i
		}
		i /= 64
	}
	return -1
}
