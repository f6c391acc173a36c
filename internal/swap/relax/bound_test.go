package relax

import (
	"testing"
	"time"

	"gm/internal/swap"
)

// TestBound compares with bounds by hand.
func TestBound(t *testing.T) {
	// Tensors of 10 bytes that are all read at the end, and one of 30 before that.
	apart := &swap.Graph{Ops: []swap.Op{{Duration: 10}, {Duration: 10}, {Duration: 10}, {Duration: 10}, {Duration: 10}, {Duration: 10}}}
	for i := range int32(3) {
		apart.Tensors = append(apart.Tensors, swap.Tensor{Bytes: 10, Made: i, Uses: []int32{5}, Recompute: time.Duration(10 * (i + 1))})
	}
	apart.Tensors = append(apart.Tensors, swap.Tensor{Bytes: 30, Made: 3, Uses: []int32{4}})
	// The same, but the first is dead by then, and the second is computed from it, if at all.
	ghost := &swap.Graph{Ops: apart.Ops, Tensors: append([]swap.Tensor(nil), apart.Tensors...)}
	ghost.Tensors[0].Uses = []int32{1}
	ghost.Tensors[1].From = []int32{0}
	ghost.Tensors[2].Recompute = 0
	for name, test := range map[string]struct {
		graph  *swap.Graph
		device int64
		want   time.Duration // beside the 60 ns of all operators
		ok     bool
	}{
		"all fits":        {apart, 60, 0, true},
		"one has to go":   {apart, 50, 10, true},
		"two have to go":  {apart, 40, 30, true},
		"half of a third": {apart, 35, 45, true}, // of a fraction, where there is none
		"all have to go":  {apart, 30, 60, true},
		"too large":       {apart, 29, 0, false},
		"with its input":  {ghost, 40, 30, true},
		"a half, with it": {ghost, 45, 15, true},
	} {
		for blocks := 1; blocks <= 6; blocks++ {
			got, ok := Bound(test.graph, test.device, Effort{Blocks: blocks, Rounds: 4000})
			if ok != test.ok || ok && (got > 60+test.want || got < 60+test.want-1) {
				t.Errorf("%s, %d blocks: %v (%v), want %v", name, blocks, got, ok, 60+test.want)
			}
		}
	}
}
