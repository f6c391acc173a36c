package evict

import (
	"math"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestCosts follows the sets of a chain 0-1-2-3-4 of tensors that take 1, 2, 4, 8 and 16 ns, and of 5, alone, which cannot be recomputed.
func TestCosts(t *testing.T) {
	g := &swap.Graph{Ops: make([]swap.Op, 7)}
	for i := range int32(6) {
		x := swap.Tensor{Bytes: 1, Made: i, Uses: []int32{6}, Recompute: 1 << i}
		if i > 0 {
			x.From = []int32{i - 1}
		}
		g.Tensors = append(g.Tensors, x)
	}
	g.Tensors[5].Recompute = 0
	c := newCosts(g)
	all := func() (costs []time.Duration) {
		for i := range int32(5) {
			costs = append(costs, c.Of(i))
		}
		return costs
	}
	for _, step := range []struct {
		what string
		do   func()
		want []time.Duration
	}{
		{"none is evicted", func() {}, []time.Duration{1, 2, 4, 8, 16}},
		{"5 is gone", func() { c.gone(5) }, []time.Duration{1, 2, 4, 8, 16}},
		{"1 is gone", func() { c.gone(1) }, []time.Duration{1 + 2, 2, 4 + 2, 8, 16}},
		{"3 is gone", func() { c.gone(3) }, []time.Duration{1 + 2, 2, 4 + 2 + 8, 8, 16 + 8}},
		{"2 joins them", func() { c.gone(2) }, []time.Duration{1 + 14, 2 + 14, 4 + 14, 8 + 14, 16 + 14}},
		{"2 is back, and the others are one set still", func() { c.back(2) }, []time.Duration{1 + 10, 2, 4 + 10, 8, 16 + 10}},
		{"1 is back", func() { c.back(1) }, []time.Duration{1, 2, 4 + 8, 8, 16 + 8}},
	} {
		if step.do(); !slices.Equal(all()[4:], step.want[4:]) || c.Of(0) != step.want[0] || c.set[2] == 0 && c.Of(2) != step.want[2] {
			t.Errorf("%s: %v, want %v", step.what, all(), step.want)
		}
	}
}

// TestUntil has a chain in which what cannot be recomputed ends sooner and later.
func TestUntil(t *testing.T) {
	g := &swap.Graph{Ops: make([]swap.Op, 9), Tensors: []swap.Tensor{
		{Bytes: 1, Made: 0, Uses: []int32{8}, Recompute: 1},                      // of nothing
		{Bytes: 1, Made: 0, Uses: []int32{5}},                                    // not at all
		{Bytes: 1, Made: 1, Uses: []int32{8}, Recompute: 1, From: []int32{0}},    //
		{Bytes: 1, Made: 2, Uses: []int32{8}, Recompute: 1, From: []int32{0, 1}}, //
		{Bytes: 1, Made: 3, Uses: []int32{8}, Recompute: 1, From: []int32{3, 2}}, //
		{Bytes: 1, Made: 3, Uses: []int32{4}, From: []int32{3}},                  // not at all, though its input can be
		{Bytes: 1, Made: 4, Uses: []int32{8}, Recompute: 1, From: []int32{4, 5}}, //
	}}
	want := []int32{math.MaxInt32, -1, math.MaxInt32, 5, 5, -1, 4}
	if got := Until(draft.New(g, swap.Limits{})); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
