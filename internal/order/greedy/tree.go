package greedy

// tree holds the operators that are ready, by number. Each node has the least of what the operators below it take, and of what they leave.
type tree struct {
	size  int // leaves, a power of two
	nodes []leaf
}

func newTree(n int) *tree {
	t := &tree{size: 1}
	for t.size < n {
		t.size *= 2
	}
	t.nodes = make([]leaf, 2*t.size)
	for i := range t.nodes {
		t.nodes[i] = absent
	}
	return t
}

func (t *tree) set(op int32, l leaf) {
	i := t.size + int(op)
	t.nodes[i] = l
	for i /= 2; i > 0; i /= 2 {
		a, b := t.nodes[2*i], t.nodes[2*i+1]
		node := leaf{min(a.takes, b.takes), min(a.leaves, b.leaves)}
		if t.nodes[i] == node {
			return
		}
		t.nodes[i] = node
	}
}

// first returns the first operator.
func (t *tree) first() int32 {
	i := 1
	for i < t.size {
		if i *= 2; t.nodes[i] == absent {
			i++
		}
	}
	return int32(i - t.size)
}

// firstBelow returns the first operator that takes at most so many bytes and leaves fewer than a number, -1 without one.
func (t *tree) firstBelow(takes, leaves int64) int32 { return t.findBelow(1, takes, leaves) }

func (t *tree) findBelow(i int, takes, leaves int64) int32 {
	if t.nodes[i].takes > takes || t.nodes[i].leaves >= leaves {
		return -1
	}
	if i >= t.size {
		return int32(i - t.size)
	}
	if op := t.findBelow(2*i, takes, leaves); op >= 0 {
		return op
	}
	return t.findBelow(2*i+1, takes, leaves)
}

// leastWithin returns, of the operators that take at most so many bytes, the first that leaves the fewest, -1 without one.
func (t *tree) leastWithin(takes int64) int32 {
	op, _ := t.findLeast(1, takes, -1, absent.leaves)
	return op
}

func (t *tree) findLeast(i int, takes int64, op int32, leaves int64) (int32, int64) {
	switch node := t.nodes[i]; {
	case node.takes > takes || node.leaves >= leaves:
		return op, leaves
	case i >= t.size:
		return int32(i - t.size), node.leaves
	}
	op, leaves = t.findLeast(2*i, takes, op, leaves)
	return t.findLeast(2*i+1, takes, op, leaves)
}

// leastTaker returns the first operator of those that take the fewest bytes.
func (t *tree) leastTaker() int32 {
	i := 1
	for i < t.size {
		if i *= 2; t.nodes[i+1].takes < t.nodes[i].takes {
			i++
		}
	}
	return int32(i - t.size)
}
