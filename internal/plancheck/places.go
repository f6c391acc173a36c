package plancheck

import (
	"cmp"
	"fmt"
	"slices"

	"gm/formats/plan"
)

// maxBytes bounds sizes and offsets so that sums of two do not overflow.
const maxBytes = 1 << 60

// arena is what tensors must not overlap in.
type arena struct {
	device, code int32
}

// usage is what an arena was seen to hold.
type usage struct {
	pool int32 // that all of the arena's tensors are of: a private pool's memory is in use whenever its graph runs
	end  int64 // bytes: the highest end
	now  int64 // bytes that live
	load int64 // bytes: the most that did
}

// places checks the rows without their trace: it follows births and deaths over the live tensors in the order of
// their offsets, where a tensor that overlaps any overlaps a neighbour.
func (c *checked) places() (Report, error) {
	if c.meta.Alignment < 1 {
		return Report{}, fmt.Errorf("alignment of %d bytes", c.meta.Alignment)
	}
	for i := range c.tensors {
		if reason := c.alone(i); reason != "" {
			return Report{}, fmt.Errorf("row %d: tensor %d %s", i, c.tensors[i].ID, reason)
		}
	}
	byOffset, rank := c.byOffset()
	deaths := c.byDeath()
	live := newBitTree(len(c.tensors))
	arenas := map[arena]*usage{}
	for i := range c.tensors {
		t := &c.tensors[i]
		for dead := &c.tensors[deaths[0]]; dead.Free <= t.Alloc; dead = &c.tensors[deaths[0]] {
			live.clear(rank[deaths[0]])
			arenas[arenaOf(dead)].now -= c.rounded(dead)
			deaths = deaths[1:]
		}
		for _, neighbour := range [2]int{live.before(rank[i]), live.after(rank[i])} {
			if neighbour >= 0 && c.overlap(t, &c.tensors[byOffset[neighbour]]) {
				return Report{}, c.explain(i, byOffset[neighbour])
			}
		}
		live.set(rank[i])
		u := arenas[arenaOf(t)]
		if u == nil {
			u = &usage{pool: t.Pool}
			arenas[arenaOf(t)] = u
		}
		if u.pool != t.Pool {
			return Report{}, fmt.Errorf("row %d: tensor %d is of pool %q, in an arena of pool %q", i, t.ID, c.text(t.Pool), c.text(u.pool))
		}
		u.now += c.rounded(t)
		u.end, u.load = max(u.end, c.end(t)), max(u.load, u.now)
	}
	return c.sums(arenas)
}

func arenaOf(t *plan.Tensor) arena { return arena{t.Device, t.Arena} }

// alone says what is wrong with a row by itself, or after the one before it.
func (c *checked) alone(i int) string {
	t := &c.tensors[i]
	switch {
	case t.Size < 1 || t.Size > maxBytes:
		return fmt.Sprintf("has %d bytes", t.Size)
	case t.Alloc < 0 || t.Free <= t.Alloc || t.Free > c.meta.Rows:
		return fmt.Sprintf("lives in the rows [%d, %d) of %d", t.Alloc, t.Free, c.meta.Rows)
	case t.Offset < 0 || t.Offset > maxBytes:
		return fmt.Sprintf("is at offset %d", t.Offset)
	case t.Offset%c.meta.Alignment != 0:
		return fmt.Sprintf("is at offset %d, no multiple of %d", t.Offset, c.meta.Alignment)
	case i > 0 && t.Alloc <= c.tensors[i-1].Alloc:
		return fmt.Sprintf("comes to life at row %d, the one above at %d", t.Alloc, c.tensors[i-1].Alloc)
	}
	return ""
}

// byOffset returns the tensors arena by arena in the order of their offsets, and the place of each in that order.
func (c *checked) byOffset() (order, rank []int) {
	order, rank = make([]int, len(c.tensors)), make([]int, len(c.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &c.tensors[i], &c.tensors[j]
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Arena, b.Arena), cmp.Compare(a.Offset, b.Offset), cmp.Compare(i, j))
	})
	for place, i := range order {
		rank[i] = place
	}
	return order, rank
}

// byDeath returns the tensors in the order in which they are freed.
func (c *checked) byDeath() []int {
	order := make([]int, len(c.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(c.tensors[i].Free, c.tensors[j].Free) })
	return order
}

func (c *checked) overlap(a, b *plan.Tensor) bool {
	return arenaOf(a) == arenaOf(b) && a.Offset < c.end(b) && b.Offset < c.end(a)
}

// explain returns the error for row i, which overlaps row j.
func (c *checked) explain(i, j int) error {
	a, b := &c.tensors[i], &c.tensors[j]
	return fmt.Errorf("row %d: tensor %d [%#x, %#x) overlaps tensor %d [%#x, %#x) of row %d in arena %s while both live (rows %d to %d)",
		i, a.ID, a.Offset, c.end(a), b.ID, b.Offset, c.end(b), j, c.text(a.Arena),
		max(a.Alloc, b.Alloc), min(a.Free, b.Free))
}

// sums checks what the metadata says of the whole.
func (c *checked) sums(arenas map[arena]*usage) (Report, error) {
	r := Report{Tensors: len(c.tensors), Arenas: len(arenas)}
	for _, u := range arenas {
		r.Peak += u.end
		r.Load += u.load
		if r.Peak > maxBytes {
			return Report{}, fmt.Errorf("the arenas end beyond %d bytes, added up", int64(maxBytes))
		}
	}
	switch {
	case r.Peak != c.meta.Peak:
		return Report{}, fmt.Errorf("peak of %d bytes, but the arenas end at %d, added up", c.meta.Peak, r.Peak)
	case c.meta.LowerBound < 0 || c.meta.LowerBound > r.Load:
		return Report{}, fmt.Errorf("lower bound of %d bytes, but at most %d live at one time", c.meta.LowerBound, r.Load)
	case c.meta.Optimal && c.meta.Peak != c.meta.LowerBound:
		return Report{}, fmt.Errorf("optimal, but the peak of %d bytes is over the lower bound of %d", c.meta.Peak, c.meta.LowerBound)
	}
	return r, nil
}
