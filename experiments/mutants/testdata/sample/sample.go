// Package sample is changed by a test.
package sample

import "cmp"

// Choose returns the index of the smallest element of at least the limit, -1 if there is none.
func Choose(xs []int, limit int) int {
	best := -1
	for i := 0; i < len(xs); i++ {
		if xs[i] >= limit && (best < 0 || xs[i] < xs[best]) {
			best = i
		}
	}
	return best
}

// Span returns the least and the greatest of two numbers, and how they compare.
func Span(a, b int) (least, greatest, order int) { return min(a, b), max(a, b, a), cmp.Compare(a, b) }

// Keep puts a number into a set unless it is 0.
func Keep(set map[int]bool, x int) {
	if x == 0 {
		clear(set)
		return
	}
	set[x] = true
}
