package gapfit

import (
	"math/rand/v2"
	"testing"
)

// TestGapTree adds and removes gaps: the tree has them in order, each node above those of lower priority, and finds the smallest that holds a size.
func TestGapTree(t *testing.T) {
	var tree gapTree
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 23))
		n := 1 + rng.IntN(60)
		tree.reset(n)
		in := map[int32]bool{}
		for range 4 * n {
			node := rng.Int32N(int32(n))
			if in[node] {
				tree.remove(node)
				delete(in, node)
			} else {
				tree.insert(node, 1+rng.Int64N(5), int64(node))
				in[node] = true
			}
			if count := checkTree(t, &tree, tree.root); count != len(in) {
				t.Fatalf("seed %d: %d gaps, expected %d", seed, count, len(in))
			}
			size := 1 + rng.Int64N(6)
			want := none
			for k := range in {
				if tree.size[k] >= size && (want == none || tree.before(k, tree.size[want], tree.at[want])) {
					want = k
				}
			}
			if got := tree.fit(size); got != want {
				t.Fatalf("seed %d: gap %d holds %d, expected %d", seed, got, size, want)
			}
		}
	}
}

// checkTree checks the order of the nodes below one, and counts them.
func checkTree(t *testing.T, tree *gapTree, node int32) int {
	t.Helper()
	if node == none {
		return 0
	}
	left, right := tree.left[node], tree.right[node]
	if left != none && (!tree.before(left, tree.size[node], tree.at[node]) || priority(left) > priority(node)) {
		t.Fatalf("node %d is left of and below %d", left, node)
	}
	if right != none && (tree.before(right, tree.size[node], tree.at[node]) || priority(right) > priority(node)) {
		t.Fatalf("node %d is right of and below %d", right, node)
	}
	return checkTree(t, tree, left) + 1 + checkTree(t, tree, right)
}
