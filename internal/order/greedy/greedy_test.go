package greedy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
)

// TestOrder compares the choices of both rules with those that follow from trying each ready operator.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		p := ordertest.Random(rng, 1+rng.IntN(40))
		for j := range p.Tensors {
			p.Tensors[j].Over = nil
		}
		for _, l := range []*order.Links{order.Link(p), order.Link(p).Reversed()} {
			for _, rule := range []Rule{EagerFree, LeastPeak} {
				got, want := Order(l, rule), slow(l, rule)
				if err := l.Check(got); err != nil {
					t.Fatalf("problem %d, %v: %v", i, rule, err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("problem %d, %v: %v, want %v", i, rule, got, want)
				}
			}
		}
	}
}

// slow orders operators by a rule, with the loads of each order that it tries.
func slow(l *order.Links, rule Rule) []int32 {
	n := l.Problem.Ops()
	var made []int32
	var live, peak int64
	for len(made) < n {
		best, bestTakes, bestLeaves := int32(-1), int64(0), int64(0)
		for op := range int32(n) {
			if slices.Contains(made, op) || slices.ContainsFunc(l.Preds.Of(op), func(b int32) bool { return !slices.Contains(made, b) }) {
				continue
			}
			takes, leaves := tried(l, made, op)
			fits, bestFits := live+takes <= peak, live+bestTakes <= peak
			better := best < 0
			switch {
			case rule == EagerFree:
				better = better || fits && leaves < 0 && !(bestFits && bestLeaves < 0)
			case fits && bestFits:
				better = better || leaves < bestLeaves
			default:
				better = better || takes < bestTakes
			}
			if better {
				best, bestTakes, bestLeaves = op, takes, leaves
			}
		}
		made = append(made, best)
		peak = max(peak, live+bestTakes)
		live += bestLeaves
	}
	return made
}

// tried returns the bytes that an operator takes behind others, and how many more there are in memory after it.
func tried(l *order.Links, made []int32, op int32) (takes, leaves int64) {
	takes = l.Problem.Temp[op]
	for _, t := range l.Touched.Of(op) {
		tensor := &l.Problem.Tensors[t]
		ran := 0
		for _, o := range tensor.Ops {
			if slices.Contains(made, o) {
				ran++
			}
		}
		if ran == 0 {
			takes += tensor.Bytes
			leaves += tensor.Bytes
		}
		if ran == len(tensor.Ops)-1 {
			leaves -= tensor.Bytes
		}
	}
	return takes, leaves
}

func TestNoisy(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	l := order.Link(ordertest.Random(rng, 60))
	first := Noisy(l, 0.5, rand.New(rand.NewPCG(1, 1)))
	if err := l.Check(first); err != nil {
		t.Fatal(err)
	}
	if again := Noisy(l, 0.5, rand.New(rand.NewPCG(1, 1))); !slices.Equal(first, again) {
		t.Error("the same seed gives another order")
	}
	if other := Noisy(l, 0.5, rand.New(rand.NewPCG(2, 1))); slices.Equal(first, other) {
		t.Error("another seed gives the same order")
	}
}
