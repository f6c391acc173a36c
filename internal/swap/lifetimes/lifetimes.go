// Package lifetimes says what lives in the memory of the device from when to when while a step runs under a schedule: what a layout of that
// step is of.
package lifetimes

import (
	"errors"
	"fmt"

	"gm/internal/dsa"
	"gm/internal/swap"
)

// Stay is memory that is taken once and freed once.
type Stay struct {
	Tensor int32 // of the graph; -1 for memory beside its tensors
	Bytes  int64

	// Operators: it is taken right before First runs, and freed right before Until would. -1 and the number of operators stand
	// for what is there before the step and after it.
	First, Until int32

	// The same as places in the order in which the program takes memory and frees it, from 0. No two are equal.
	From, End int64
}

// Step is what lives during a step.
type Step struct {
	Stays  []Stay // by From
	Events int64  // how often memory is taken or freed
}

// Problem returns the layout of a step as a problem, buffer by buffer the stays. Offsets and sizes are multiples of align, in bytes.
func (s *Step) Problem(align int64) *dsa.Problem {
	p := &dsa.Problem{Align: align}
	for i := range s.Stays {
		stay := &s.Stays[i]
		p.Start, p.End, p.Size = append(p.Start, stay.From), append(p.End, stay.End), append(p.Size, stay.Bytes)
	}
	return p
}

// Load returns the most bytes that live at once, sizes rounded up to multiples of align: no layout takes less.
func (s *Step) Load(align int64) int64 {
	change := make([]int64, s.Events)
	for i := range s.Stays {
		stay := &s.Stays[i]
		bytes := (stay.Bytes + align - 1) / align * align
		change[stay.From] += bytes
		change[stay.End] -= bytes
	}
	live, most := int64(0), int64(0)
	for _, bytes := range change {
		live += bytes
		most = max(most, live)
	}
	return most
}

// Beside is memory beside the graph's tensors, in use from the operator Made to the operator Last: -1 and the number of operators for
// memory that is there before the step and after it.
type Beside struct {
	Bytes      int64
	Made, Last int32
}

var (
	errTensor  = errors.New("there is no such tensor")
	errGone    = errors.New("it is not on the device")
	errThere   = errors.New("it is on the device")
	errNotMade = errors.New("it is not written yet")
)

// Of lists what lives during a step of g, a valid graph, whose tensors come and go as the actions say, and are gone after their last reader.
// Right before an operator runs its actions are carried out in their order, and then memory is taken for what it writes and for what is
// beside that. It is an error if an operator reads, or an action is about, a tensor that is not there. Whether the contents are right is not
// looked at: see package simulate.
func Of(g *swap.Graph, actions []swap.Action, beside []Beside) (*Step, error) {
	if err := inOrder(actions, len(g.Ops)); err != nil {
		return nil, err
	}
	r := newRun(g, beside)
	r.takeBeside(-1)
	for op := range int32(len(g.Ops)) {
		for ; len(actions) > 0 && actions[0].At == op; actions = actions[1:] {
			if err := r.act(&actions[0]); err != nil {
				return nil, fmt.Errorf("%v of tensor %d at operator %d: %w", actions[0].Kind, actions[0].Tensor, op, err)
			}
		}
		if err := r.operate(op); err != nil {
			return nil, fmt.Errorf("operator %d: %w", op, err)
		}
	}
	r.finish()
	return &r.step, nil
}

// inOrder returns an error unless the actions are in the order of the operators and within them.
func inOrder(actions []swap.Action, operators int) error {
	for i := range actions {
		if at := int(actions[i].At); at < 0 || at >= operators || i > 0 && at < int(actions[i-1].At) {
			return fmt.Errorf("action %d is at operator %d: an action before it is at a later one, or there are only %d", i, at, operators)
		}
	}
	return nil
}

// run goes through a step.
type run struct {
	graph   *swap.Graph
	readers swap.Lists
	writers swap.Lists
	beside  []Beside
	begins  [][]int32 // of what is beside, by the operator that it begins with; those from before the step first
	ends    [][]int32 // the same by the operator that it ends with, and those after the step last

	step  Step
	place []int32 // where each tensor's stay is among all, or away or unmade
	at    []int32 // the same of what is beside
}

// What place holds of a tensor that is not on the device.
const (
	unmade = -1
	away   = -2
)

func newRun(g *swap.Graph, beside []Beside) *run {
	r := &run{
		graph: g, readers: g.Readers(), writers: g.Writers(), beside: beside, begins: make([][]int32, len(g.Ops)+1),
		ends: make([][]int32, len(g.Ops)+1), place: make([]int32, len(g.Tensors)), at: make([]int32, len(beside)),
	}
	for t := range r.place {
		r.place[t] = unmade
	}
	for i, b := range beside {
		r.begins[b.Made+1] = append(r.begins[b.Made+1], int32(i))
		r.ends[b.Last] = append(r.ends[b.Last], int32(i))
	}
	return r
}

// take begins a stay, and returns where it is among all.
func (r *run) take(tensor int32, bytes int64, op int32) int32 {
	r.step.Stays = append(r.step.Stays, Stay{Tensor: tensor, Bytes: bytes, First: op, From: r.step.Events})
	r.step.Events++
	return int32(len(r.step.Stays) - 1)
}

// give ends a stay.
func (r *run) give(stay, until int32) {
	s := &r.step.Stays[stay]
	s.Until, s.End = until, r.step.Events
	r.step.Events++
}

func (r *run) takeBeside(op int32) {
	for _, i := range r.begins[op+1] {
		r.at[i] = r.take(-1, r.beside[i].Bytes, op)
	}
}

func (r *run) giveBeside(op int32) {
	for _, i := range r.ends[op] {
		r.give(r.at[i], min(op+1, int32(len(r.graph.Ops))))
	}
}

// act carries out what an action does to memory.
func (r *run) act(a *swap.Action) error {
	if a.Tensor < 0 || int(a.Tensor) >= len(r.place) {
		return errTensor
	}
	p := &r.place[a.Tensor]
	switch {
	case *p == unmade:
		return errNotMade
	case a.Kind == swap.Prefetch && *p != away:
		return errThere
	case a.Kind == swap.Prefetch || a.Kind == swap.Recompute && *p == away:
		*p = r.take(a.Tensor, r.graph.Tensors[a.Tensor].Bytes, a.At)
	case *p == away:
		return errGone
	case a.Kind == swap.Free:
		r.give(*p, a.At)
		*p = away
	}
	return nil
}

// operate takes memory for what an operator writes, and frees what it is the last to read.
func (r *run) operate(op int32) error {
	for _, t := range r.writers.Of(op) {
		r.place[t] = r.take(t, r.graph.Tensors[t].Bytes, op)
	}
	r.takeBeside(op)
	for _, t := range r.readers.Of(op) {
		if r.place[t] < 0 {
			return fmt.Errorf("tensor %d, which it reads: %w", t, errGone)
		}
		if r.graph.Tensors[t].Last() == op {
			r.give(r.place[t], op+1)
			r.place[t] = away
		}
	}
	r.giveBeside(op)
	return nil
}

// finish frees what is left after the last operator.
func (r *run) finish() {
	ops := int32(len(r.graph.Ops))
	for _, p := range r.place {
		if p >= 0 {
			r.give(p, ops)
		}
	}
	r.giveBeside(ops)
}
