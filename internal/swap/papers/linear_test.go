package papers

import (
	"math"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// linear is a network of layers in a row, each of which writes one byte in a nanosecond. The backward pass of a layer reads its input and the
// gradient of its output, and writes that of its input.
func linear(layers int32) *swap.Graph {
	g := &swap.Graph{}
	for i := range 2 * layers {
		o := swap.Op{Duration: 1}
		if i >= layers {
			o.Phase = swap.Backward
		}
		g.Ops = append(g.Ops, o)
	}
	for i := range layers {
		t := swap.Tensor{Bytes: 1, Made: i, Recompute: 1, Uses: []int32{2*layers - 1 - i}}
		if i > 0 {
			t.From = []int32{i - 1}
		}
		if i+1 < layers {
			t.Uses = []int32{i + 1, 2*layers - 2 - i, 2*layers - 1 - i}
		}
		g.Tensors = append(g.Tensors, t)
	}
	for i := layers; i+1 < 2*layers; i++ {
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: 1, Made: i, Uses: []int32{i + 1}})
	}
	return g
}

// TestLinear has room for twice the root of a linear network's layers: DTR recomputes a number of tensors of the order of the layers (Kirisame et
// al., theorem 3.1), as does Coop, to which it is the same where all tensors are of one size.
func TestLinear(t *testing.T) {
	for _, layers := range []int32{16, 64, 256, 1024, 4096} {
		g := linear(layers)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		l := swap.Limits{Device: int64(2 * math.Sqrt(float64(layers)))}
		for name, plan := range map[string]func(*draft.Problem) ([]swap.Action, error){"dtr": DTR, "coop": Coop} {
			actions, err := plan(draft.New(g, l))
			if err != nil {
				t.Fatal(err)
			}
			again := int32(0)
			for _, a := range actions {
				if a.Kind == swap.Recompute {
					again++
				}
			}
			if again < layers/2 || again > layers+layers/10 {
				t.Errorf("%s recomputes %d of %d tensors", name, again, layers)
			}
		}
	}
}
