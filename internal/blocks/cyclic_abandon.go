package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Abandon makes the allocator a Stitch again, which may adopt another plan. Blocks stay where they are. What else the plan had is free for any
// request. It waits for streams that use freed blocks of the plan. During a capture it fails, and the plan stays.
func (c *Cyclic) Abandon() error {
	if c.cycle == nil {
		return nil
	}
	if c.capturing() {
		return fmt.Errorf("abandon a plan: %w", cuda.ErrCapturing)
	}
	if err := c.lender.synchronize(); err != nil {
		return fmt.Errorf("abandon a plan: %w", err)
	}
	var errs []error
	for k := range c.arenas {
		if a := &c.arenas[k]; a.region != none {
			errs = append(errs, c.open(a))
		}
	}
	for i, state := range c.states {
		if state != stepFree {
			c.handOver(int32(i))
		}
	}
	c.cycle, c.arenas, c.due, c.states, c.late, c.isLate = nil, nil, nil, nil, nil, nil
	c.begun, c.matched, c.target, c.next = false, 0, 0, none
	c.byPtr, c.guests, c.grams = newIndex(), guests{}, grams{}
	c.compared = false
	return errors.Join(errs...)
}

// open makes all memory of an arena free.
func (c *Cyclic) open(a *arena) error {
	r := &c.regions[a.region]
	r.planned = false
	if a.backed == 0 {
		return c.shrink(a.region)
	}
	h := c.heaps[r.heap]
	c.putBack(h, stretch{r.ptr, a.backed, a.region}, h.passing.epoch)
	h.passing.frees++
	return nil
}

// handOver makes a block of the plan one of the Stitch, with the streams that use it. Its memory was made free.
func (c *Cyclic) handOver(i int32) {
	s, a := c.at(i), &c.arenas[c.at(i).Arena]
	h := c.heaps[c.regions[a.region].heap]
	n := roundUp(s.Size, minBlockSize)
	class := h.class(n)
	id := c.placeAt(h, class, stretch{c.regions[a.region].ptr + cuda.Ptr(s.Offset), n, a.region})
	c.stats.Allocated -= n
	c.handOut(class, id)
	for _, stream := range c.lender.borrowers[i] {
		c.Stitch.lender.borrow(id, stream)
	}
	delete(c.lender.borrowers, i)
}
