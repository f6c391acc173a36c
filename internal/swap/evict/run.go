package evict

import (
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// Memory decides where tensors are, and which are evicted for others.
type Memory interface {
	// Place finds room for a tensor of a number of bytes, evicting others by [Run.Evict] as it takes, so that [Run.Lacks] is 0 or less. Tensor
	// none of 0 bytes asks for no more than that. Otherwise it returns how many bytes are missing, at least 1.
	Place(r *Run, t int32, bytes int64) (missing int64)
	// Drop takes a tensor away.
	Drop(t int32)
}

// None is the number of no tensor.
const None = int32(-1)

// mostAgain is how many times as long as the step's operators recomputations may take. A run that takes longer is given up.
const mostAgain = 10

// Run is a step that runs.
type Run struct {
	*draft.Problem
	Costs   *Costs
	Now     time.Duration // of the operators and recomputations so far
	Used    int64         // bytes of the tensors that are here
	memory  Memory
	op      int32 // that runs, or for which others are recomputed
	here    []bool
	held    []int32         // how often a tensor is needed by what is going on
	touched []time.Duration // when it was last written or read
	next    []int32         // its next use, as a place in Uses
	until   []int32
	again   time.Duration
	beside  int64 // bytes that are taken while a tensor is recomputed, beside all tensors
	actions []swap.Action
}

// Plan runs a step and returns the actions that this takes. The error is a *[draft.ShortError].
func Plan(p *draft.Problem, m Memory) ([]swap.Action, error) {
	n := len(p.Graph.Tensors)
	r := &Run{
		Problem: p, Costs: newCosts(p.Graph), memory: m, until: Until(p),
		here: make([]bool, n), held: make([]int32, n), touched: make([]time.Duration, n), next: make([]int32, n),
	}
	for op := range p.Ops() {
		if err := r.operate(op); err != nil {
			return nil, err
		}
	}
	return r.actions, nil
}

// operate runs an operator: with what it reads here, and room for what it writes.
func (r *Run) operate(op int32) error {
	r.op = op
	reads, writes := r.Readers.Of(op), r.Writers.Of(op)
	for _, t := range reads {
		r.held[t]++
	}
	if missing := r.memory.Place(r, None, 0); missing > 0 {
		return &draft.ShortError{Bytes: missing, Op: op}
	}
	for _, t := range reads {
		if !r.here[t] && r.Graph.Tensors[t].Made < op {
			if err := r.recompute(t); err != nil {
				return err
			}
		}
	}
	for _, t := range writes {
		if err := r.arrive(t); err != nil {
			return err
		}
		r.held[t]++
	}
	r.Now += r.Graph.Ops[op].Duration
	for _, t := range writes {
		r.held[t]--
		r.touched[t] = r.Now
	}
	for _, t := range reads {
		r.held[t]--
		r.touched[t] = r.Now
		if r.next[t]++; r.Graph.Tensors[t].Last() == op {
			r.leave(t)
		}
	}
	return nil
}

// recompute recomputes a tensor, and before that what it is computed from and is not here.
func (r *Run) recompute(t int32) error {
	x := &r.Graph.Tensors[t]
	for _, from := range x.From {
		r.held[from]++
	}
	for _, from := range x.From {
		if !r.here[from] {
			if err := r.recompute(from); err != nil {
				return err
			}
		}
	}
	r.again += x.Recompute
	if r.again > mostAgain*r.Begin[r.Ops()] {
		return &draft.ShortError{Bytes: x.Bytes, Op: r.op}
	}
	r.beside = x.Scratch
	err := r.arrive(t)
	r.beside = 0
	if err != nil {
		return err
	}
	r.Costs.back(t)
	r.actions = append(r.actions, swap.Action{Kind: swap.Recompute, Tensor: t, At: r.op})
	r.Now += x.Recompute
	for _, from := range x.From {
		r.held[from]--
		r.touched[from] = r.Now
	}
	return nil
}

func (r *Run) arrive(t int32) error {
	bytes := r.Graph.Tensors[t].Bytes
	if missing := r.memory.Place(r, t, bytes); missing > 0 {
		return &draft.ShortError{Bytes: missing, Op: r.op}
	}
	r.here[t] = true
	r.Used += bytes
	return nil
}

// leave takes a tensor away. It counts as evicted from then on: others may have to be computed from it.
func (r *Run) leave(t int32) {
	r.here[t] = false
	r.Used -= r.Graph.Tensors[t].Bytes
	r.memory.Drop(t)
	r.Costs.gone(t)
}

// Evict frees the memory of a tensor that [Run.Evictable] allows.
func (r *Run) Evict(t int32) {
	r.leave(t)
	r.actions = append(r.actions, swap.Action{Kind: swap.Free, Tensor: t, At: r.op})
}

// Evictable reports whether a tensor is here, not needed by what is going on, and can be recomputed when it is needed next.
func (r *Run) Evictable(t int32) bool {
	if !r.here[t] || r.held[t] > 0 {
		return false
	}
	x := &r.Graph.Tensors[t]
	return int(r.next[t]) == len(x.Uses) || x.Uses[r.next[t]] <= r.until[t]
}

// Lacks returns how many bytes are missing for that many more to be within the limit, beside what the operator, or what is recomputed for it, takes.
func (r *Run) Lacks(bytes int64) int64 {
	return r.Used + bytes + r.beside + r.Graph.Ops[r.op].Base - r.Limits.Device
}

// Stale returns for how long a tensor was neither written nor read, at least 1 ns.
func (r *Run) Stale(t int32) time.Duration { return max(1, r.Now-r.touched[t]) }
