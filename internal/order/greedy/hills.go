package greedy

import (
	"gm/internal/order"
)

// Below orders the operators so that at most so many bytes are in memory, if that succeeds. A ready operator and those that become ready behind
// it, one after the other, form a climb: a hill of memory, and then a valley. A climb whose valley is no higher than where it began, and whose
// hill fits below the limit, loses nothing by running at once: whatever runs later has more room (Liu, 1987, for trees). An update of a
// parameter is such a climb. Otherwise the operator runs that leaves the least in memory, or the first of the program, of those that fit.
// It returns false when none fits.
func Below(l *order.Links, limit int64, program bool) ([]int32, bool) {
	h := &hills{run: newRun(l), limit: limit, climbs: make([]climb, l.Problem.Ops()), alone: newTree(l.Problem.Ops())}
	for op := range h.waits {
		h.waits[op] = int32(len(l.Preds.Of(int32(op))))
	}
	for op := range h.waits {
		if h.waits[op] == 0 {
			h.look(int32(op))
		}
	}
	for len(h.made) < len(h.waits) {
		if !h.step(program) {
			return nil, false
		}
	}
	return h.made, true
}

// hills is an order that is being made below a limit.
type hills struct {
	*run
	limit  int64
	made   []int32
	climbs []climb // by operator, of those that are ready
	alone  *tree   // the operators that are ready, without what climbs behind them
	undo   []int32 // tensors of a climb that is tried
	seen   []int32 // operators of it
}

// climb is what runs behind an operator, and what it takes.
type climb struct {
	ops  []int32
	hill int64 // bytes at most, more than before
	left int64 // bytes behind it, more than before
}

// longest is how many operators a climb has at most.
const longest = 48

// step runs a climb or an operator. It returns false when none fits.
func (h *hills) step(program bool) bool {
	room := h.limit - h.live
	if op := h.ready.firstBelow(room, 1); op >= 0 {
		for _, next := range h.climbs[op].ops {
			h.perform(next)
		}
		return true
	}
	op := h.alone.leastWithin(room)
	if program {
		op = h.alone.firstBelow(room, absent.leaves)
	}
	if op < 0 {
		return false
	}
	h.perform(op)
	return true
}

// perform runs an operator and looks again at those whose climbs it changes.
func (h *hills) perform(op int32) {
	p := h.Problem
	h.done[op] = true
	h.ready.set(op, absent)
	h.alone.set(op, absent)
	h.made = append(h.made, op)
	takes, leaves := h.cost(op)
	h.peak = max(h.peak, h.live+takes)
	h.live += leaves
	var changed []int32
	for _, t := range h.Touched.Of(op) {
		tensor := &p.Tensors[t]
		h.left[t]--
		if fresh := h.left[t] == int32(len(tensor.Ops))-1; !fresh && h.left[t] != 1 {
			continue
		}
		for _, other := range tensor.Ops {
			if !h.done[other] && h.waits[other] == 0 {
				changed = append(changed, other)
			}
		}
	}
	for _, other := range h.Succs.Of(op) {
		if h.waits[other]--; h.waits[other] == 0 {
			changed = append(changed, other)
		}
	}
	for _, other := range changed {
		h.look(other)
	}
}

// cost returns the bytes that an operator takes while it runs next, and leaves in memory.
func (h *hills) cost(op int32) (takes, leaves int64) {
	p := h.Problem
	for _, t := range h.Touched.Of(op) {
		tensor := &p.Tensors[t]
		if h.left[t] == int32(len(tensor.Ops)) {
			takes += tensor.Bytes
		}
		if h.left[t] == 1 {
			leaves -= tensor.Bytes
		}
	}
	return takes + p.Temp[op], leaves + takes
}

// look finds the climb of a ready operator: as far as the first valley that is no higher than the beginning, or else the operator alone.
func (h *hills) look(op int32) {
	takes, leaves := h.cost(op)
	c := climb{ops: append(h.climbs[op].ops[:0], op), hill: takes, left: leaves}
	if leaves > 0 {
		if far, ok := h.follow(op); ok {
			c = far
		}
	}
	h.climbs[op] = c
	h.alone.set(op, leaf{takes, leaves})
	h.ready.set(op, leaf{c.hill, c.left})
}

// follow tries the operators that become ready behind one, the first of the program first, until no more is in memory than before.
func (h *hills) follow(op int32) (climb, bool) {
	c := climb{}
	h.undo, h.seen = h.undo[:0], h.seen[:0]
	var enabled []int32
	found := false
	for len(c.ops) < longest {
		takes, leaves := h.cost(op)
		c.ops = append(c.ops, op)
		c.hill = max(c.hill, c.left+takes)
		c.left += leaves
		if c.left <= 0 {
			found = true
			break
		}
		for _, t := range h.Touched.Of(op) {
			h.left[t]--
			h.undo = append(h.undo, t)
		}
		for _, other := range h.Succs.Of(op) {
			h.waits[other]--
			h.seen = append(h.seen, other)
			if h.waits[other] == 0 {
				enabled = append(enabled, other)
			}
		}
		if len(enabled) == 0 {
			break
		}
		first := 0
		for i := range enabled {
			if enabled[i] < enabled[first] {
				first = i
			}
		}
		op = enabled[first]
		enabled[first] = enabled[len(enabled)-1]
		enabled = enabled[:len(enabled)-1]
	}
	for _, t := range h.undo {
		h.left[t]++
	}
	for _, other := range h.seen {
		h.waits[other]++
	}
	return c, found
}
