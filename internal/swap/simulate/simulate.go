// Package simulate runs a schedule on a model of a GPU: a compute stream and a stream for copies each way, in virtual time.
package simulate

import (
	"fmt"
	"time"

	"gm/internal/swap"
)

// Result is the time, traffic and peak of a step under a schedule.
type Result struct {
	Step       time.Duration // from the first operator to the end of all work
	Compute    time.Duration // the operators themselves
	Recomputed time.Duration // operators that were run again
	Stalls     [Causes]time.Duration

	Peak     int64 // bytes in use on the device at worst
	PeakOp   int32 // the operator, and the phase that it belongs to, in which that is so
	Host     int64 // bytes of host memory in use at worst
	Out, In  int64 // bytes copied to the host and back
	OutBusy  time.Duration
	InBusy   time.Duration
	Actions  int
	Offloads int // tensors copied to the host
}

// Cause is why the compute stream waited.
type Cause int

// The causes of stalls.
const (
	WaitOut Cause = iota // memory is freed before its copy to the host has ended
	WaitIn               // what is needed is not back yet
	Causes
)

func (c Cause) String() string { return [...]string{"wait for a copy out", "wait for a copy in"}[c] }

// Stalled returns how long the compute stream waited.
func (r *Result) Stalled() time.Duration { return r.Stalls[WaitOut] + r.Stalls[WaitIn] }

// Overlap returns the part of the time of all copies, from 0 to 1, for which the compute stream did not wait.
func (r *Result) Overlap() float64 {
	busy := r.OutBusy + r.InBusy
	if busy == 0 {
		return 1
	}
	return max(0, 1-float64(r.Stalled())/float64(busy))
}

// Lane is one of the streams.
type Lane int

// The lanes.
const (
	Compute Lane = iota
	Out
	In
)

// Span is a stretch of work, or of waiting, in a lane.
type Span struct {
	Lane       Lane
	Name       string
	Begin, End time.Duration
	Tensor     int32 // -1 for an operator
	Wait       bool

	// Bytes in use while an operator runs; 0 for what is none.
	Tensors, Base, Host int64
}

// Run simulates one step. See is called for each span unless it is nil. A schedule that breaks the rules of package swap is an error,
// as is a tensor that is not on the device when an operator reads it. Limits are not looked at.
func Run(g *swap.Graph, actions []swap.Action, link swap.Copier, see func(Span)) (*Result, error) {
	return New(g, link).Run(actions, see)
}

// Run simulates one step, as [Run] does. The result holds until the next one.
func (m *Machine) Run(actions []swap.Action, see func(Span)) (*Result, error) {
	m.begin(actions, see)
	next := 0
	for op := range m.graph.Ops {
		for ; next < len(actions) && int(actions[next].At) == op; next++ {
			if err := m.act(&actions[next]); err != nil {
				return nil, fmt.Errorf("action %d, %v of tensor %d at operator %d: %w", next, actions[next].Kind, actions[next].Tensor, op, err)
			}
			m.due.add(actions[next].Tensor, int32(op))
		}
		if err := m.operate(op); err != nil {
			return nil, fmt.Errorf("operator %d: %w", op, err)
		}
	}
	if next < len(actions) {
		return nil, fmt.Errorf("action %d is at operator %d: an action before it is at a later one, or there are only %d",
			next, actions[next].At, len(m.graph.Ops))
	}
	return m.finish(), nil
}
