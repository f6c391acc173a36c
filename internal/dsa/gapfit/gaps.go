package gapfit

import (
	"math"
	"slices"
)

// gapTree keeps the gaps between live buffers ordered by size, then by address. It is a treap whose priorities are a hash of the node
// numbers.
type gapTree struct {
	left, right []int32 // children of each node, none where there is none
	size, at    []int64 // units, of the gap of each node
	root        int32
}

const none = int32(-1)

// reset empties the tree, with room for n nodes.
func (t *gapTree) reset(n int) {
	t.left, t.right = slices.Grow(t.left[:0], n)[:n], slices.Grow(t.right[:0], n)[:n]
	t.size, t.at = slices.Grow(t.size[:0], n)[:n], slices.Grow(t.at[:0], n)[:n]
	t.root = none
}

// insert adds a gap, which must not be in the tree.
func (t *gapTree) insert(node int32, size, at int64) {
	t.size[node], t.at[node] = size, at
	link := &t.root
	for *link != none && priority(*link) > priority(node) {
		if t.before(*link, size, at) {
			link = &t.right[*link]
		} else {
			link = &t.left[*link]
		}
	}
	t.left[node], t.right[node] = t.split(*link, size, at)
	*link = node
}

// remove removes a gap, which must be in the tree.
func (t *gapTree) remove(node int32) {
	link := &t.root
	for *link != node {
		if t.before(*link, t.size[node], t.at[node]) {
			link = &t.right[*link]
		} else {
			link = &t.left[*link]
		}
	}
	*link = t.merge(t.left[node], t.right[node])
}

// fit returns the smallest gap of at least size, the lowest of those, or none.
func (t *gapTree) fit(size int64) int32 {
	found := none
	for node := t.root; node != none; {
		if t.before(node, size, math.MinInt64) {
			node = t.right[node]
		} else {
			found, node = node, t.left[node]
		}
	}
	return found
}

// before reports whether the node sorts before a gap of the given size and address.
func (t *gapTree) before(node int32, size, at int64) bool {
	return t.size[node] < size || t.size[node] == size && t.at[node] < at
}

// split splits the tree under node into the gaps that sort before (size, at) and the others.
func (t *gapTree) split(node int32, size, at int64) (low, high int32) {
	lowLink, highLink := &low, &high
	for node != none {
		if t.before(node, size, at) {
			*lowLink, lowLink = node, &t.right[node]
			node = t.right[node]
		} else {
			*highLink, highLink = node, &t.left[node]
			node = t.left[node]
		}
	}
	*lowLink, *highLink = none, none
	return low, high
}

// merge joins two trees, all of low sorting before all of high.
func (t *gapTree) merge(low, high int32) int32 {
	root := none
	link := &root
	for low != none && high != none {
		if priority(low) > priority(high) {
			*link, link = low, &t.right[low]
			low = *link
		} else {
			*link, link = high, &t.left[high]
			high = *link
		}
	}
	*link = max(low, high) // one of them is none, the least
	return root
}

// priority spreads node numbers evenly (the finalizer of MurmurHash3).
func priority(node int32) uint32 {
	h := uint32(node) + 1
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
