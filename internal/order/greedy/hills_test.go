package greedy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
)

// TestBelow orders random problems below limits: what is returned keeps to the limit, and a limit that the least order needs is often met.
func TestBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	met := 0
	for i := range 600 {
		p := ordertest.Random(rng, 1+rng.IntN(8))
		for j := range p.Tensors {
			p.Tensors[j].Over = nil
		}
		l := order.Link(p)
		least := ordertest.Least(l)
		for _, program := range []bool{false, true} {
			if _, ok := Below(l, least-1, program); ok {
				t.Fatalf("problem %d: an order below the least peak %d", i, least)
			}
			made, ok := Below(l, least, program)
			if !ok {
				continue
			}
			met++
			if err := l.Check(made); err != nil {
				t.Fatalf("problem %d: %v", i, err)
			}
			if peak, _ := order.Peak(l.Loads(made)); peak != least {
				t.Errorf("problem %d: peak %d, limit %d", i, peak, least)
			}
		}
	}
	if met < 800 {
		t.Errorf("the least peak was met in only %d of 1200", met)
	}
}

// TestClimbs runs an update, which takes more before it frees its gradient, at once where it fits below the limit, and later where it does not.
func TestClimbs(t *testing.T) {
	// Operator 0 makes gradient 0, operators 1 and 2 update with it by way of tensor 1; operators 3 and 4 free tensor 2, which is there from 0 on.
	p := &order.Problem{
		Temp: make([]int64, 5),
		Tensors: []order.Tensor{
			{Bytes: 10, Ops: []int32{0, 1, 2}}, {Bytes: 10, Ops: []int32{1, 2}}, {Bytes: 30, Ops: []int32{0, 3}}, {Bytes: 5, Ops: []int32{3, 4}},
		},
	}
	l := order.Link(p)
	for limit, want := range map[int64][]int32{50: {0, 1, 2, 3, 4}, 49: {0, 3, 1, 2, 4}} {
		if got, ok := Below(l, limit, false); !ok || !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, %v, want %v", limit, got, ok, want)
		}
	}
}
