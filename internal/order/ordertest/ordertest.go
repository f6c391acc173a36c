// Package ordertest makes problems for tests of package order, and solves small ones by trying all orders.
package ordertest

import (
	"math/rand/v2"
	"slices"

	"gm/internal/order"
)

// Random returns a problem of so many operators, each of which reads some of the tensors that stand before it. Some tensors may be written
// over others, some operators take memory while they run, and some pairs have an order without a tensor.
func Random(rng *rand.Rand, ops int) *order.Problem {
	p := &order.Problem{Temp: make([]int64, ops), Phases: make([]int8, ops)}
	for op := range int32(ops) {
		if rng.IntN(3) == 0 {
			p.Temp[op] = rng.Int64N(20)
		}
		p.Phases[op] = int8(3 * int(op) / ops)
		var read []int32
		for range rng.IntN(4) {
			if n := len(p.Tensors); n > 0 {
				t := rng.IntN(n)
				if at := &p.Tensors[t]; at.Ops[len(at.Ops)-1] != op {
					at.Ops = append(at.Ops, op)
					read = append(read, int32(t))
				}
			}
		}
		for range 1 + rng.IntN(2) {
			t := order.Tensor{Bytes: 1 + rng.Int64N(30), Ops: []int32{op}}
			if len(read) > 0 && rng.IntN(3) == 0 {
				t.Over = []int32{read[rng.IntN(len(read))]}
			}
			p.Tensors = append(p.Tensors, t)
		}
		if op > 0 && rng.IntN(6) == 0 {
			p.Before = append(p.Before, [2]int32{rng.Int32N(op), op})
		}
	}
	return p
}

// Least returns the least peak of all orders of a problem.
func Least(l *order.Links) int64 {
	n := l.Problem.Ops()
	least := int64(-1)
	var ran []int32
	var try func()
	try = func() {
		if len(ran) == n {
			if peak, _ := order.Peak(l.Loads(ran)); least < 0 || peak < least {
				least = peak
			}
			return
		}
		for op := range int32(n) {
			if slices.Contains(ran, op) || !ready(l, ran, op) {
				continue
			}
			ran = append(ran, op)
			try()
			ran = ran[:len(ran)-1]
		}
	}
	try()
	return least
}

func ready(l *order.Links, ran []int32, op int32) bool {
	return !slices.ContainsFunc(l.Preds.Of(op), func(before int32) bool { return !slices.Contains(ran, before) })
}
