// Package order finds orders of operators in which a step takes little memory, and lower bounds that no order is below.
//
// A tensor is in memory from the first operator that touches it to the last one. So the order decides how long each tensor lives, and the
// load: the most bytes in memory at once. To find the order of least load is NP-hard; what a step of training leaves free is little enough
// that most can be proven optimal or nearly so.
//
//	problem.go   operators, tensors, and which operators come before which
//	links.go     both directions of that relation, and its closure
//	load.go      the load of an order, operator by operator
//
// Methods are below this package:
//
//	greedy    one operator after the other, by what it takes and frees: eager-free, lpmf, climbs below a limit
//	mincut    the lower bound, and orders that its cuts suggest
//	downsets  exact search
//	papers    MODeL and ROAM
//	solve     all of them, within a time
package order

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Problem is a set of operators to be put in an order. Operators and tensors are numbered from 0; the order of their numbers is one that
// keeps to Before.
type Problem struct {
	Temp    []int64    // by operator: bytes that it takes while it runs, beside the tensors
	Tensors []Tensor   //
	Before  [][2]int32 // the first operator of each pair comes before the second
	Phases  []int8     // by operator: 0 forward, 1 backward, 2 update, for methods that look at it; nil if they are not known
}

// Tensor is memory that is taken by the first operator that touches it and given back by the last.
type Tensor struct {
	Bytes int64   // at least 1
	Ops   []int32 // the operators that touch it, ascending; the first one makes it and comes before the others
	// Over are the tensors that it may be written over: the first of Ops touches them, and if it is the last that does, one of them
	// gives its memory to the tensor.
	Over []int32
}

// Made returns the operator that makes the tensor.
func (t *Tensor) Made() int32 { return t.Ops[0] }

// MaxBytes bounds the sum of all tensors and of what one operator takes.
const MaxBytes = 1 << 60

// ErrInvalid is wrapped by errors about problems that are none.
var ErrInvalid = errors.New("invalid problem")

// Ops returns the number of operators.
func (p *Problem) Ops() int { return len(p.Temp) }

// Validate returns an error that wraps [ErrInvalid] for a problem that breaks a rule of its fields: methods take a valid one for granted.
func (p *Problem) Validate() error {
	if len(p.Temp) > math.MaxInt32/2 || len(p.Tensors) > math.MaxInt32/2 {
		return fmt.Errorf("%w: %d operators and %d tensors", ErrInvalid, len(p.Temp), len(p.Tensors))
	}
	if p.Phases != nil && len(p.Phases) != p.Ops() {
		return fmt.Errorf("%w: phases of %d operators, of %d", ErrInvalid, len(p.Phases), p.Ops())
	}
	for op, bytes := range p.Temp {
		if bytes < 0 || bytes > MaxBytes {
			return fmt.Errorf("%w: operator %d takes %d bytes", ErrInvalid, op, bytes)
		}
	}
	for _, pair := range p.Before {
		if pair[0] < 0 || pair[0] >= pair[1] || int(pair[1]) >= p.Ops() {
			return fmt.Errorf("%w: operator %d before operator %d of %d", ErrInvalid, pair[0], pair[1], p.Ops())
		}
	}
	var sum int64
	for i := range p.Tensors {
		t := &p.Tensors[i]
		if err := p.validateTensor(t); err != nil {
			return fmt.Errorf("%w: tensor %d: %w", ErrInvalid, i, err)
		}
		if sum += t.Bytes; sum > MaxBytes {
			return fmt.Errorf("%w: the tensors have more than %d bytes", ErrInvalid, int64(MaxBytes))
		}
	}
	return nil
}

func (p *Problem) validateTensor(t *Tensor) error {
	if t.Bytes < 1 || t.Bytes > MaxBytes {
		return fmt.Errorf("%d bytes", t.Bytes)
	}
	if len(t.Ops) == 0 {
		return errors.New("no operator touches it")
	}
	for i, op := range t.Ops {
		if op < 0 || int(op) >= p.Ops() || i > 0 && op <= t.Ops[i-1] {
			return fmt.Errorf("operators %v of %d are not ascending", t.Ops, p.Ops())
		}
	}
	for _, over := range t.Over {
		if over < 0 || int(over) >= len(p.Tensors) || &p.Tensors[over] == t || !slices.Contains(p.Tensors[over].Ops, t.Made()) {
			return fmt.Errorf("in the place of tensor %d, which operator %d does not touch", over, t.Made())
		}
	}
	return nil
}
