package partition

import (
	"encoding/json"
	"fmt"
)

// Request asks for a choice, as JSON.
type Request struct {
	Problem
	Saved []int32 `json:"saved"` // the choice that there is
	Limit int64   `json:"limit"` // bytes: the most that a choice may take, if there is one
}

// Answer is a choice, as JSON.
type Answer struct {
	Saved []int32 `json:"saved"` // values of the forward pass, ascending
	Peak  int64   `json:"peak"`  // bytes
	NS    int64   `json:"ns"`    // nanoseconds that are spent recomputing
	// Before is the peak of the choice that there was.
	Before int64 `json:"before"`
}

// Read reads a request, a JSON text. Its problem is valid, and its choice too.
func Read(text []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if r.Limit < 0 {
		return nil, fmt.Errorf("read the request: a limit of %d bytes", r.Limit)
	}
	if _, err := r.cost(r.Saved); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return &r, nil
}

// Check proves that an answer, a JSON text, is a choice that can be run, and that it costs what it names.
func (r *Request) Check(text []byte) error {
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	c, err := r.cost(a.Saved)
	if err != nil {
		return err
	}
	before, err := r.cost(r.Saved)
	if err != nil {
		return err
	}
	if before.Peak != a.Before {
		return fmt.Errorf("the choice that there was takes %d bytes, and not %d", before.Peak, a.Before)
	}
	if c.Peak != a.Peak || c.NS != a.NS {
		return fmt.Errorf("the choice takes %d bytes and %d ns, and not %d and %d", c.Peak, c.NS, a.Peak, a.NS)
	}
	return nil
}

// cost returns what a choice comes to.
func (r *Request) cost(list []int32) (Cost, error) {
	saved, err := r.Marks(list)
	if err != nil {
		return Cost{}, err
	}
	c := NewMachine(&r.Problem).Run(saved, r.Limit)
	if c.Misses >= 0 {
		return c, fmt.Errorf("value %d is not saved, and cannot be recomputed", c.Misses)
	}
	return c, nil
}

// Marks returns a list of values of the forward pass as marks of all values.
func (p *Problem) Marks(list []int32) ([]bool, error) {
	saved, forward := make([]bool, len(p.Values)), make([]bool, len(p.Values))
	for i := range p.Ops[:p.Forward] {
		for _, v := range p.Ops[i].Makes {
			forward[v] = true
		}
	}
	for _, v := range list {
		if v < 0 || int(v) >= len(saved) || !forward[v] {
			return nil, fmt.Errorf("value %d is saved, and none of the forward pass", v)
		}
		if p.Values[v].Barred {
			return nil, fmt.Errorf("value %d is saved, which is not allowed", v)
		}
		saved[v] = true
	}
	return saved, nil
}
