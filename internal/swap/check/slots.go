package check

import (
	"cmp"
	"fmt"
	"slices"

	"gm/internal/swap"
)

// Slot is where in the host's memory a copy is.
type Slot struct {
	Action        int // Offload
	Offset, Bytes int64
}

// Slots places the copies of a schedule, in the order in which they are made, each as low as it can be (first fit). A place is taken again
// once what was there is needed no more, as the order of the program has it. Actions that are not possible get slots too.
func Slots(g *swap.Graph, actions []swap.Action) []Slot {
	c := checker{graph: g, actions: actions}
	if !c.ordered() {
		return nil
	}
	c.order = newOrder(g, actions)
	var slots []Slot
	var taken []placed // by offset
	for _, x := range byFirst(hostCopies(g, actions, &c.order)) {
		taken = slices.DeleteFunc(taken, func(y placed) bool { return y.last < x.first })
		bytes, offset, at := actions[x.action].Bytes, int64(0), 0
		for ; at < len(taken) && taken[at].offset < offset+bytes; at++ {
			offset = max(offset, taken[at].offset+taken[at].bytes)
		}
		taken = slices.Insert(taken, at, placed{x.last, offset, bytes})
		slots = append(slots, Slot{x.action, offset, bytes})
	}
	return slots
}

// placed is a copy that is on the host up to a moment.
type placed struct {
	last          int
	offset, bytes int64
}

// byFirst returns all copies in the order in which they are made.
func byFirst(copies [][]hosted) []hosted {
	all := slices.Concat(copies...)
	slices.SortFunc(all, func(a, b hosted) int { return cmp.Compare(a.first, b.first) })
	return all
}

// slots proves that each copy has a slot and that no two are in the same bytes at a time.
func (c *checker) slots(slots []Slot, limit int64) {
	of := map[int]Slot{}
	for _, s := range slots {
		of[s.Action] = s
	}
	var copies [][]hosted
	for t := range c.tensors {
		copies = append(copies, c.tensors[t].hosted)
	}
	var taken []placed // by offset
	for _, x := range byFirst(copies) {
		s, ok := of[x.action]
		switch {
		case !ok || s.Bytes < c.actions[x.action].Bytes:
			c.wrong(x.action, "it has no slot of %d bytes", c.actions[x.action].Bytes)
			continue
		case s.Offset < 0 || s.Offset > limit-s.Bytes:
			c.wrong(x.action, "its slot of %d bytes at %d is not in the host's %d", s.Bytes, s.Offset, limit)
			continue
		}
		taken = slices.DeleteFunc(taken, func(y placed) bool { return y.last < x.first })
		at, _ := slices.BinarySearchFunc(taken, s.Offset, func(y placed, offset int64) int { return cmp.Compare(y.offset, offset) })
		if at > 0 && taken[at-1].offset+taken[at-1].bytes > s.Offset || at < len(taken) && taken[at].offset < s.Offset+s.Bytes {
			c.report(Violation{x.action, int(c.actions[x.action].At), int(c.actions[x.action].Tensor),
				fmt.Sprintf("its slot of %d bytes at %d is in use", s.Bytes, s.Offset)})
			continue
		}
		taken = slices.Insert(taken, at, placed{x.last, s.Offset, s.Bytes})
	}
}
