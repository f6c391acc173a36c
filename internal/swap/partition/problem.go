// Package partition is about which tensors of its forward pass a compiled graph saves for its backward pass: what is not saved is recomputed
// there. A choice takes memory, which is a matter of when each tensor is there, and time.
//
//	problem.go   operators and what they make, and the rules for them
//	machine.go   the memory and the time of a choice
//	request.go   problems and choices as JSON
//	choose       the search for a choice
package partition

import "fmt"

// Problem is a graph of operators in the order in which they run: those of the forward pass, and behind them those of the backward pass. What
// is there before and after both, as parameters, is not a part of it.
type Problem struct {
	Ops     []Op
	Values  []Value
	Forward int // the operators of the forward pass
}

// Op is an operator.
type Op struct {
	NS    int64   `json:"ns"`    // that it takes
	Reads []int32 `json:"reads"` // values, each made before
	Makes []int32 `json:"makes"`
	Able  bool    `json:"able"`  // it can run once more, with the same result
	Fused bool    `json:"fused"` // it runs in one kernel with what it reads, if that can be fused as well
}

// Value is a tensor.
type Value struct {
	Bytes int64 `json:"bytes"`
	Kept  bool  `json:"kept"` // it is a result of its pass: it stays until the backward pass ends
	// Inlined is whether the forward pass computes it where it is read, unless it is saved. Recomputed it has memory.
	Inlined bool `json:"inlined"`
	Barred  bool `json:"barred"` // it is never saved
}

const (
	// MaxOps is the most operators, and the most values.
	MaxOps = 1 << 18
	// MaxBytes is the most that all values take, and MaxNS the most that all operators do.
	MaxBytes, MaxNS = 1 << 60, 1 << 60
)

// Validate returns an error for a problem that breaks the rules: each value is made once, before it is read, and no operator of the forward
// pass reads what the backward pass makes.
func (p *Problem) Validate() error {
	if len(p.Ops) > MaxOps || len(p.Values) > MaxOps || p.Forward < 0 || p.Forward > len(p.Ops) {
		return fmt.Errorf("%d operators, %d of them of the forward pass, and %d values", len(p.Ops), p.Forward, len(p.Values))
	}
	var bytes, ns int64
	for i, v := range p.Values {
		if v.Bytes < 0 || v.Bytes > MaxBytes-bytes {
			return fmt.Errorf("value %d has %d bytes", i, v.Bytes)
		}
		bytes += v.Bytes
	}
	made, read := make([]bool, len(p.Values)), make([]int, len(p.Values))
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.NS < 0 || op.NS > MaxNS-ns {
			return fmt.Errorf("operator %d takes %d ns", i, op.NS)
		}
		ns += op.NS
		for _, v := range op.Reads {
			if v < 0 || int(v) >= len(made) || !made[v] {
				return fmt.Errorf("operator %d reads value %d, which is not there", i, v)
			}
			if read[v] == i+1 {
				return fmt.Errorf("operator %d reads value %d twice", i, v)
			}
			read[v] = i + 1
		}
		for _, v := range op.Makes {
			if v < 0 || int(v) >= len(made) || made[v] {
				return fmt.Errorf("operator %d makes value %d, which is none or was made before", i, v)
			}
			if i < p.Forward && p.Values[v].Barred && !op.Able {
				return fmt.Errorf("operator %d makes value %d, which is never saved and cannot be recomputed", i, v)
			}
			made[v] = true
		}
	}
	for v := range made {
		if !made[v] {
			return fmt.Errorf("nothing makes value %d", v)
		}
	}
	return nil
}
