// Package greedy orders operators one after the other, by what each takes and frees.
package greedy

import (
	"math"
	"math/rand/v2"

	"gm/internal/order"
)

// Rule chooses the next of the operators that are ready.
type Rule int

// The rules.
const (
	// EagerFree takes the first operator of the program that gives back more memory than it takes, and fits below the peak so far; without one, the first.
	EagerFree Rule = iota
	// LeastPeak takes, of the operators that fit below the peak so far, the one that leaves the least in memory; without one, the one that
	// takes the least while it runs. PyTorch's Inductor calls it lpmf.
	LeastPeak
)

func (r Rule) String() string { return [...]string{"eager-free", "lpmf"}[r] }

// Order orders the operators by a rule.
func Order(l *order.Links, rule Rule) []int32 { return newRun(l).order(rule, nil) }

// Noisy orders them by LeastPeak, with what operators leave in memory changed at random by up to a part of it.
func Noisy(l *order.Links, part float64, rng *rand.Rand) []int32 {
	noise := make([]float64, l.Problem.Ops())
	for i := range noise {
		noise[i] = 1 + part*(2*rng.Float64()-1)
	}
	return newRun(l).order(LeastPeak, noise)
}

// run is the state of an order that is being made.
type run struct {
	*order.Links
	waits []int32 // by operator: operators that come before it and have not run
	left  []int32 // by tensor: operators that touch it and have not run
	takes []int64 // by operator: bytes of the tensors that nobody has touched yet, and its own
	frees []int64 // by operator: bytes of the tensors that it is the last to touch
	done  []bool
	ready *tree
	live  int64
	peak  int64
}

func newRun(l *order.Links) *run {
	p := l.Problem
	r := &run{
		Links: l, waits: make([]int32, p.Ops()), left: make([]int32, len(p.Tensors)), takes: make([]int64, p.Ops()), frees: make([]int64, p.Ops()),
		done: make([]bool, p.Ops()), ready: newTree(p.Ops()),
	}
	copy(r.takes, p.Temp)
	for i := range p.Tensors {
		t := &p.Tensors[i]
		r.left[i] = int32(len(t.Ops))
		for _, op := range t.Ops {
			r.takes[op] += t.Bytes
		}
		if len(t.Ops) == 1 {
			r.frees[t.Ops[0]] += t.Bytes
		}
	}
	return r
}

func (r *run) order(rule Rule, noise []float64) []int32 {
	for op := range r.waits {
		if r.waits[op] = int32(len(r.Preds.Of(int32(op)))); r.waits[op] == 0 {
			r.show(int32(op), noise)
		}
	}
	made := make([]int32, 0, len(r.waits))
	for len(made) < len(r.waits) {
		op := r.next(rule)
		made = append(made, op)
		r.execute(op, noise)
	}
	return made
}

// next chooses an operator.
func (r *run) next(rule Rule) int32 {
	slack := r.peak - r.live
	if rule == EagerFree {
		if op := r.ready.firstBelow(slack, 0); op >= 0 {
			return op
		}
		return r.ready.first()
	}
	if op := r.ready.leastWithin(slack); op >= 0 {
		return op
	}
	return r.ready.leastTaker()
}

// show puts a ready operator into the tree, or brings it up to date there.
func (r *run) show(op int32, noise []float64) {
	leaves := r.takes[op] - r.Problem.Temp[op] - r.frees[op]
	if noise != nil {
		leaves = int64(float64(leaves) * noise[op])
	}
	r.ready.set(op, leaf{r.takes[op], leaves})
}

// execute runs an operator, and tells the others that touch its tensors.
func (r *run) execute(op int32, noise []float64) {
	p := r.Problem
	r.done[op] = true
	r.ready.set(op, absent)
	r.peak = max(r.peak, r.live+r.takes[op])
	r.live += r.takes[op] - p.Temp[op] - r.frees[op]
	for _, t := range r.Touched.Of(op) {
		tensor := &p.Tensors[t]
		fresh := r.left[t] == int32(len(tensor.Ops))
		r.left[t]--
		last := r.left[t] == 1
		if !fresh && !last {
			continue
		}
		for _, other := range tensor.Ops {
			if r.done[other] {
				continue
			}
			if fresh {
				r.takes[other] -= tensor.Bytes
			}
			if last {
				r.frees[other] += tensor.Bytes
			}
			if r.waits[other] == 0 {
				r.show(other, noise)
			}
		}
	}
	for _, other := range r.Succs.Of(op) {
		if r.waits[other]--; r.waits[other] == 0 {
			r.show(other, noise)
		}
	}
}

// leaf is what an operator takes while it runs, and leaves behind.
type leaf struct{ takes, leaves int64 }

// absent is the leaf of an operator that is not ready.
var absent = leaf{math.MaxInt64, math.MaxInt64}
