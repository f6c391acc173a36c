// Package randwire makes randomly wired networks (Xie et al., Exploring Randomly Wired Neural Networks for Image Recognition, ICCV 2019), the
// irregular graphs that planners of operator order are compared on.
package randwire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gm/internal/swap"
)

// Graph returns the forward pass of one stage: a Watts-Strogatz ring of n nodes, each linked to its k nearest, k even, whose links are
// rewired with a probability and point from the lower number to the higher. A node reads the outputs of all that point at it, and makes one
// of so many bytes; nodes that none points at read the input, and the output is made of those that point at none.
func Graph(n, k int, rewired float64, bytes int64, seed uint64) *swap.Graph {
	inputs := wire(n, k, rewired, rand.New(rand.NewPCG(seed, 0)))
	g := &swap.Graph{Name: fmt.Sprintf("randwire WS(%d,%d,%g) seed %d", n, k, rewired, seed), Complete: true}
	add := func(name string, inputs []int32) {
		op := int32(len(g.Ops))
		g.Ops = append(g.Ops, swap.Op{Name: name, Type: swap.Conv, Layer: -1, Duration: time.Millisecond})
		g.Tensors = append(g.Tensors, swap.Tensor{Name: name, Bytes: bytes, Made: op, Layer: -1})
		for _, input := range inputs {
			g.Tensors[input].Uses = append(g.Tensors[input].Uses, op)
		}
	}
	add("input", nil)
	for node := range n {
		if len(inputs[node]) == 0 {
			inputs[node] = []int32{-1}
		}
		for i := range inputs[node] {
			inputs[node][i]++ // the input is tensor 0
		}
		add(fmt.Sprintf("node %d", node), inputs[node])
	}
	var ends []int32
	for t := range g.Tensors {
		if len(g.Tensors[t].Uses) == 0 {
			ends = append(ends, int32(t))
		}
	}
	add("output", ends)
	g.Tensors[n+1].Uses = []int32{int32(n) + 1}
	return g
}

// wire returns, for each node, those that point at it, ascending.
func wire(n, k int, rewired float64, rng *rand.Rand) [][]int32 {
	linked := make([][]bool, n)
	for i := range linked {
		linked[i] = make([]bool, n)
	}
	for step := 1; step <= k/2; step++ {
		for i := range n {
			to := (i + step) % n
			if rng.Float64() < rewired {
				to = rng.IntN(n)
				for tries := 0; tries < 4*n && (to == i || linked[i][to] || linked[to][i]); tries++ {
					to = rng.IntN(n)
				}
			}
			if to != i {
				linked[min(i, to)][max(i, to)] = true
			}
		}
	}
	inputs := make([][]int32, n)
	for from := range linked {
		for to, is := range linked[from] {
			if is {
				inputs[to] = append(inputs[to], int32(from))
			}
		}
	}
	for _, in := range inputs {
		slices.Sort(in)
	}
	return inputs
}
