package request

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Size is what operators and tensors of a graph, in their order, have in a step of another size.
type Size struct {
	NS          []int64 `json:"ns"` // of operators
	Bases       []int64 `json:"bases"`
	Bytes       []int64 `json:"bytes"` // of tensors
	RecomputeNS []int64 `json:"recompute_ns"`
	Scratch     []int64 `json:"scratch"`
}

// Sized is the answer for a size. Error is why there is no schedule, "" where there is one.
type Sized struct {
	Answer
	Error string `json:"error"`
}

// Answers is the answer to a request for several sizes, as JSON.
type Answers struct {
	Sizes []Sized `json:"sizes"`
}

// Sized returns the graph of a step of another size.
func (g *Graph) Sized(s *Size) (*Graph, error) {
	if len(s.NS) != len(g.Ops) || len(s.Bases) != len(g.Ops) || len(s.Bytes) != len(g.Tensors) || len(s.RecomputeNS) != len(g.Tensors) || len(s.Scratch) != len(g.Tensors) {
		return nil, fmt.Errorf("a size has %d and %d figures of %d operators, and %d, %d and %d of %d tensors",
			len(s.NS), len(s.Bases), len(g.Ops), len(s.Bytes), len(s.RecomputeNS), len(s.Scratch), len(g.Tensors))
	}
	sized := *g
	sized.Ops, sized.Tensors = slices.Clone(g.Ops), slices.Clone(g.Tensors)
	for i := range sized.Ops {
		sized.Ops[i].NS, sized.Ops[i].Base = s.NS[i], s.Bases[i]
	}
	for i := range sized.Tensors {
		t := &sized.Tensors[i]
		t.Bytes, t.RecomputeNS, t.Scratch = s.Bytes[i], s.RecomputeNS[i], s.Scratch[i]
	}
	return &sized, nil
}

// checkSizes checks the answer to a request for several sizes.
func (r *Request) checkSizes(text []byte) error {
	var answers Answers
	if err := json.Unmarshal(text, &answers); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(answers.Sizes) != len(r.Sizes) {
		return fmt.Errorf("read the answer: %d sizes of %d", len(answers.Sizes), len(r.Sizes))
	}
	for i := range r.Sizes {
		if answers.Sizes[i].Error != "" {
			continue
		}
		g, err := r.Graph.Sized(&r.Sizes[i])
		if err == nil {
			err = r.check(g, &answers.Sizes[i].Answer)
		}
		if err != nil {
			return fmt.Errorf("size %d: %w", i, err)
		}
	}
	return nil
}
