// Package check proves that a schedule is right, from the schedule, the graph and the limits alone: it shares nothing with the simulator
// and knows no time. Operators and actions are put in the one order in which the program carries them out; each tensor is followed through
// that order for itself; what is left to prove is about stretches of that order.
package check

import (
	"fmt"

	"gm/internal/swap"
)

// Violation is one way in which a schedule is wrong.
type Violation struct {
	Action  int // of the schedule; -1 if it is an operator that fails
	Op      int // the operator, or that of the action
	Tensor  int // -1 if it is about none
	Problem string
}

func (v Violation) String() string {
	where := fmt.Sprintf("operator %d", v.Op)
	if v.Action >= 0 {
		where = fmt.Sprintf("action %d at operator %d", v.Action, v.Op)
	}
	if v.Tensor >= 0 {
		where += fmt.Sprintf(", tensor %d", v.Tensor)
	}
	return where + ": " + v.Problem
}

// Most is how many violations are returned at most.
const Most = 100

// Check returns what is wrong with a schedule of g, which has to be valid. These are proven:
//
//   - each operator finds the tensors that it uses on the device, all of their rows, and so does what is recomputed;
//   - memory is freed only if its contents can be restored, or are never used again;
//   - each action is possible where it is: what is copied is there to be copied and was not copied before;
//   - at each moment no more is in use than the limits allow;
//   - no two copies are in the same memory of the host at a time, if slots are given: one for each Offload, as [Slots] makes them.
//
// That memory is not freed before its copy has ended is what Free does, by definition: it cannot be wrong in a schedule.
func Check(g *swap.Graph, s *swap.Schedule, l swap.Limits, slots []Slot) []Violation {
	c := checker{graph: g, actions: s.Actions}
	if !c.ordered() {
		return c.found
	}
	c.order = newOrder(g, s.Actions)
	c.follow()
	c.inputs()
	c.device(l.Device)
	c.host(l.Host)
	if slots != nil {
		c.slots(slots, l.Host)
	}
	return c.found
}

type checker struct {
	graph   *swap.Graph
	actions []swap.Action
	order   order
	tensors []history
	found   []Violation
}

func (c *checker) report(v Violation) {
	if len(c.found) < Most {
		c.found = append(c.found, v)
	}
}

// wrong reports an action.
func (c *checker) wrong(action int, problem string, values ...any) {
	a := &c.actions[action]
	c.report(Violation{action, int(a.At), int(a.Tensor), fmt.Sprintf("%v: ", a.Kind) + fmt.Sprintf(problem, values...)})
}

// ordered reports actions that are nowhere: nothing more can be said of a schedule that has any.
func (c *checker) ordered() bool {
	before := int32(0)
	for i, a := range c.actions {
		switch {
		case int(a.Kind) > int(swap.Settle):
			c.report(Violation{i, int(a.At), int(a.Tensor), "there is no such action"})
		case a.Tensor < 0 || int(a.Tensor) >= len(c.graph.Tensors):
			c.wrong(i, "there is no such tensor")
		case a.At < before:
			c.wrong(i, "it comes behind an action at operator %d", before)
		case int(a.At) >= len(c.graph.Ops):
			c.wrong(i, "there are but %d operators", len(c.graph.Ops))
		default:
			before = a.At
		}
	}
	return len(c.found) == 0
}

// inputs proves that what tensors are recomputed from is there.
func (c *checker) inputs() {
	for i, a := range c.actions {
		if a.Kind != swap.Recompute {
			continue
		}
		for _, from := range c.graph.Tensors[a.Tensor].From {
			if !covers(c.tensors[from].whole, c.order.ofAction(i)) {
				c.wrong(i, "tensor %d, which it is computed from, is not on the device", from)
			}
		}
	}
}

// device proves that what is in use at an operator, and whenever memory is taken before it, is within the limit.
func (c *checker) device(limit int64) {
	used := c.order.sum(func(add func(stretch, int64)) {
		for t := range c.tensors {
			for _, x := range c.tensors[t].held {
				add(x, c.graph.Tensors[t].Bytes)
			}
		}
	})
	for i, a := range c.actions {
		over := used[c.order.ofAction(i)] + c.graph.Ops[a.At].Base - limit
		if a.Kind == swap.Recompute {
			over += c.graph.Tensors[a.Tensor].Scratch
		}
		if over > 0 && (a.Kind == swap.Prefetch || a.Kind == swap.Recompute) {
			c.wrong(i, "with it %d bytes more than the limit are in use on the device", over)
		}
	}
	for op := range c.graph.Ops {
		if over := used[c.order.ofOp(op)] + c.graph.Ops[op].Base - limit; over > 0 {
			c.report(Violation{-1, op, -1, fmt.Sprintf("%d bytes more than the limit are in use on the device", over)})
		}
	}
}

// host proves that no more is on the host than the limit allows.
func (c *checker) host(limit int64) {
	used := c.order.sum(func(add func(stretch, int64)) {
		for t := range c.tensors {
			for _, x := range c.tensors[t].hosted {
				add(x.stretch, c.actions[x.action].Bytes)
			}
		}
	})
	for i, a := range c.actions {
		if over := used[c.order.ofAction(i)] - limit; over > 0 && a.Kind == swap.Offload {
			c.wrong(i, "with it %d bytes more than the limit are on the host", over)
		}
	}
}
