package skyline

import (
	"math"

	"gm/internal/dsa/sections"
)

// index finds, among the buffers not yet placed, the one of highest rank whose life fits between two sections. It is
// a segment tree over the buffers in the order of their first section: each node holds the highest rank and the
// earliest end below it, and the search skips nodes that can neither fit nor win.
type index struct {
	nodes  []indexNode // of a full binary tree: the root is 1, the children of i are 2i and 2i+1
	leaves int32       // a power of two; buffer k is node leaves+k
	visits int64       // nodes visited in all runs
}

type indexNode struct {
	rank int32 // highest below, -1 when nothing is left
	hi   int32 // least end below, MaxInt32 when nothing is left
}

var emptyNode = indexNode{rank: -1, hi: math.MaxInt32}

// reset fills the index with all buffers, keeping its memory.
func (x *index) reset(in *sections.Instance, rank []int32) {
	x.leaves = 1
	for int(x.leaves) < len(rank) {
		x.leaves *= 2
	}
	if len(x.nodes) < int(2*x.leaves) {
		x.nodes = make([]indexNode, 2*x.leaves)
	}
	leaves := x.nodes[x.leaves : 2*x.leaves]
	for k := range rank {
		leaves[k] = indexNode{rank: rank[k], hi: in.Hi[k]}
	}
	for k := len(rank); k < len(leaves); k++ {
		leaves[k] = emptyNode
	}
	for i := x.leaves - 1; i > 0; i-- {
		x.join(i)
	}
}

func (x *index) join(i int32) {
	a, b := x.nodes[2*i], x.nodes[2*i+1]
	x.nodes[i] = indexNode{rank: max(a.rank, b.rank), hi: min(a.hi, b.hi)}
}

// remove takes buffer k out.
func (x *index) remove(k int32) {
	i := x.leaves + k
	x.nodes[i] = emptyNode
	for i /= 2; i > 0; i /= 2 {
		x.join(i)
	}
}

// best returns the buffer of highest rank among [from, to) that ends by section end, or -1.
func (x *index) best(from, to, end int32) int32 {
	found := indexNode{rank: -1}
	// Climb from both edges of the range: the nodes on the way cover it.
	for l, r := from+x.leaves, to+x.leaves; l < r; l, r = l/2, r/2 {
		if l&1 == 1 {
			x.search(l, end, &found)
			l++
		}
		if r&1 == 1 {
			r--
			x.search(r, end, &found)
		}
	}
	if found.rank < 0 {
		return -1
	}
	return found.hi
}

// search looks below node i for a higher rank than that found so far; found.hi holds the buffer.
func (x *index) search(i, end int32, found *indexNode) {
	node := x.nodes[i]
	x.visits++
	if node.rank <= found.rank || node.hi > end {
		return
	}
	for i < x.leaves {
		x.visits++
		high, low := 2*i, 2*i+1
		if x.nodes[low].rank > x.nodes[high].rank {
			high, low = low, high
		}
		if x.nodes[high].hi <= end {
			x.search(high, end, found)
		}
		node = x.nodes[low]
		if node.rank <= found.rank || node.hi > end {
			return
		}
		i = low
	}
	found.rank, found.hi = node.rank, i-x.leaves
}
