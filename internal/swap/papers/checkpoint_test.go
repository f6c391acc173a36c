package papers

import (
	"slices"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestCheckpoint has three layers of three tensors: the input, which is kept, one that is recomputed from it, and one that is recomputed from
// that in the first two layers and cannot be in the last.
func TestCheckpoint(t *testing.T) {
	const layers = 3
	g := &swap.Graph{}
	for i := range int32(2 * 3 * layers) {
		o := swap.Op{Duration: 1, Layer: i / 3}
		if i >= 3*layers {
			o.Phase, o.Layer = swap.Backward, 2*layers-1-i/3
		}
		g.Ops = append(g.Ops, o)
		if o.Phase == swap.Forward {
			x := swap.Tensor{Bytes: 1, Made: i, Layer: o.Layer, Uses: []int32{6*layers - 1 - i}}
			switch {
			case i%3 == 0:
				x.Role = swap.LayerInput
			case i < 3*layers-1:
				x.Recompute, x.From = 1, []int32{i - 1}
			}
			g.Tensors = append(g.Tensors, x)
		}
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	actions, err := Checkpoint(draft.New(g, swap.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	want := []swap.Action{
		{Kind: swap.Free, Tensor: 1, At: 3}, {Kind: swap.Free, Tensor: 2, At: 3},
		{Kind: swap.Free, Tensor: 4, At: 6}, {Kind: swap.Free, Tensor: 5, At: 6}, // the third layer's backward pass begins at once
		{Kind: swap.Recompute, Tensor: 4, At: 12}, {Kind: swap.Recompute, Tensor: 5, At: 12},
		{Kind: swap.Recompute, Tensor: 1, At: 15}, {Kind: swap.Recompute, Tensor: 2, At: 15},
	}
	if !slices.Equal(actions, want) {
		t.Errorf("%v, want %v", actions, want)
	}
}
