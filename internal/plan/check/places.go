package check

import (
	"fmt"

	"gm/formats/plan"
)

// maxBytes limits sizes and offsets, so that the sum of two does not overflow.
const maxBytes = 1 << 60

// arena identifies an address range, in which tensors must not overlap.
type arena struct {
	device, code int32
}

// usage is what is known of an arena from its tensors.
type usage struct {
	pool int32 // of all tensors in the arena: the memory of a private pool is in use whenever its graph runs
	end  int64 // bytes: the highest end
	now  int64 // bytes that live now
	load int64 // bytes: the greatest load so far
}

// places checks the rows alone, without their trace.
func (c *checked) places() (Report, error) {
	if c.meta.Alignment < 1 {
		return Report{}, fmt.Errorf("alignment of %d bytes", c.meta.Alignment)
	}
	for i := range c.tensors {
		if reason := c.alone(i); reason != "" {
			return Report{}, fmt.Errorf("row %d: tensor %d %s", i, c.tensors[i].ID, reason)
		}
		if err := c.use(i); err != nil {
			return Report{}, err
		}
	}
	if err := c.sweep(c.lives(), c.explain); err != nil {
		return Report{}, err
	}
	repeated, err := c.repeats(func(row int64) int64 { return row })
	if err != nil {
		return Report{}, err
	}
	return c.sums(repeated)
}

// use records the end of a tensor.
func (c *checked) use(i int) error {
	t := &c.tensors[i]
	u := c.arenas[arenaOf(t)]
	if u == nil {
		u = &usage{pool: t.Pool}
		c.arenas[arenaOf(t)] = u
	}
	if u.pool != t.Pool {
		return fmt.Errorf("row %d: tensor %d is of pool %q, in an arena of pool %q", i, t.ID, c.text(t.Pool), c.text(u.pool))
	}
	u.end = max(u.end, c.end(t))
	return nil
}

func arenaOf(t *plan.Tensor) arena { return arena{t.Device, t.Arena} }

// alone names a fault of a row, alone or compared with the row before it, or returns "".
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
		return fmt.Sprintf("is allocated at row %d, not after the tensor above, at row %d", t.Alloc, c.tensors[i-1].Alloc)
	}
	return ""
}

func (c *checked) overlap(a, b *plan.Tensor) bool {
	return arenaOf(a) == arenaOf(b) && a.Offset < c.end(b) && b.Offset < c.end(a)
}

// explain returns the error for two lives that overlap.
func (c *checked) explain(x, y life) error {
	a, b := &c.tensors[x.tensor], &c.tensors[y.tensor]
	return fmt.Errorf("row %d: tensor %d [%#x, %#x) overlaps tensor %d [%#x, %#x) of row %d in arena %s while both live (rows %d to %d)",
		x.tensor, a.ID, a.Offset, c.end(a), b.ID, b.Offset, c.end(b), y.tensor, c.text(a.Arena),
		max(x.start, y.start), min(x.end, y.end))
}

// sums checks the totals in the metadata.
func (c *checked) sums(repeated int) (Report, error) {
	r := Report{Tensors: len(c.tensors), Arenas: len(c.arenas), Repeated: repeated}
	for _, u := range c.arenas {
		r.Peak += u.end
		r.Load += u.load
		if r.Peak > maxBytes {
			return Report{}, fmt.Errorf("the arenas end beyond %d bytes, added up", int64(maxBytes))
		}
	}
	switch {
	case r.Peak != c.meta.Peak:
		return Report{}, fmt.Errorf("peak of %d bytes, but the arenas end at %d, added up", c.meta.Peak, r.Peak)
	case c.meta.LowerBound < 0 || c.meta.LowerBound > r.Peak:
		return Report{}, fmt.Errorf("lower bound of %d bytes, with a peak of %d", c.meta.LowerBound, r.Peak)
	case c.meta.Optimal && c.meta.Peak != c.meta.LowerBound:
		return Report{}, fmt.Errorf("optimal, but the peak of %d bytes is over the lower bound of %d", c.meta.Peak, c.meta.LowerBound)
	}
	return r, nil
}
