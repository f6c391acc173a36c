// Package request holds what a program's runtime asks of the planner of orders, operators and their tensors, and what it is answered: the
// JSON texts, and the check of an answer.
package request

import (
	"encoding/json"
	"fmt"
	"time"

	"gm/internal/order"
)

// Request is a request for an order, as JSON. The numbers of operators are an order that keeps to Before.
type Request struct {
	Ops     int        `json:"ops"`
	Before  [][2]int32 `json:"before"` // the first operator of each pair comes before the second
	Tensors []Tensor   `json:"tensors"`
	LimitNS int64      `json:"limit_ns"` // how long the search may take
}

// Tensor is memory that is taken by the first operator that touches it and given back by the last.
type Tensor struct {
	Bytes int64   `json:"bytes"`
	Ops   []int32 `json:"ops"` // ascending; the first one comes before the others
}

// Answer is an order, as JSON.
type Answer struct {
	Order  []int32 `json:"order"`
	Peak   int64   `json:"peak"`  // bytes
	Bound  int64   `json:"bound"` // bytes: no order's peak is lower
	Method string  `json:"method"`
}

const (
	// MaxOps is the most operators of a request.
	MaxOps = 1 << 18
	// MaxLimit is the longest time that a request may allow.
	MaxLimit = time.Minute
)

// Read reads a request, a JSON text. Its problem is valid.
func Read(text []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if r.Ops < 1 || r.Ops > MaxOps || r.LimitNS < 1 || r.LimitNS > int64(MaxLimit) {
		return nil, fmt.Errorf("read the request: %d operators to be ordered in %d ns", r.Ops, r.LimitNS)
	}
	if err := r.Problem().Validate(); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return &r, nil
}

// Problem returns the problem as solvers take it.
func (r *Request) Problem() *order.Problem {
	p := &order.Problem{Temp: make([]int64, r.Ops), Tensors: make([]order.Tensor, len(r.Tensors)), Before: r.Before}
	for i, t := range r.Tensors {
		p.Tensors[i] = order.Tensor{Bytes: t.Bytes, Ops: t.Ops}
	}
	return p
}

// Limit is how long the search may take.
func (r *Request) Limit() time.Duration { return time.Duration(r.LimitNS) }

// Check proves that an answer, a JSON text, is an order of the request's operators, and that its peak is the one that it names.
func (r *Request) Check(text []byte) error {
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	links := order.Link(r.Problem())
	if err := links.Check(a.Order); err != nil {
		return err
	}
	if peak, _ := order.Peak(links.Loads(a.Order)); peak != a.Peak {
		return fmt.Errorf("the order's peak is %d bytes and not %d", peak, a.Peak)
	}
	return nil
}
