package check

import (
	"cmp"
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
	eachByFirst(hostCopies(g, actions, &c.order), func(h *shelf, i int32, x hosted) {
		bytes := actions[x.action].Bytes
		slot := Slot{Action: x.action, Bytes: bytes}
		if bytes > 0 {
			slot.Offset = h.lowest(bytes)
			h.put(i, slot.Offset, bytes)
		}
		slots = append(slots, slot)
	})
	return slots
}

// eachByFirst calls visit with each copy in the order in which they are made, by number, and a shelf that holds those before it that
// visit has put there and that are still needed.
func eachByFirst(copies [][]hosted, visit func(h *shelf, i int32, x hosted)) {
	all := slices.Concat(copies...)
	slices.SortFunc(all, func(a, b hosted) int { return cmp.Compare(a.first, b.first) })
	ends := make([]int32, len(all))
	for i := range ends {
		ends[i] = int32(i)
		all[i].last = max(all[i].first, all[i].last)
	}
	slices.SortFunc(ends, func(a, b int32) int { return cmp.Compare(all[a].last, all[b].last) })
	h := newShelf(len(all))
	for i, x := range all {
		for ; all[ends[0]].last < x.first; ends = ends[1:] {
			h.take(ends[0])
		}
		visit(h, int32(i), x)
	}
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
	eachByFirst(copies, func(h *shelf, i int32, x hosted) {
		s, ok := of[x.action]
		switch bytes := c.actions[x.action].Bytes; {
		case !ok || s.Bytes < bytes:
			c.wrong(x.action, "it has no slot of %d bytes", bytes)
		case s.Offset < 0 || s.Offset > limit-s.Bytes:
			c.wrong(x.action, "its slot of %d bytes at %d is not in the host's %d", s.Bytes, s.Offset, limit)
		case s.Bytes > 0 && !h.put(i, s.Offset, s.Bytes):
			c.wrong(x.action, "its slot of %d bytes at %d is in use", s.Bytes, s.Offset)
		}
	})
}
