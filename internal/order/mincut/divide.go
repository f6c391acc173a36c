package mincut

import (
	"context"
	"slices"

	"gm/internal/order"
)

// Divide improves an order by cuts: where the peak is, the operators of the minimum cut's set run first, then the operator of the peak, and
// then the rest, both in the order that they had. What stands on one side stays there, so each stretch is divided further where the next
// peak is. It ends at a peak that no cut lowers, at one of at most enough bytes, or after so many cuts, and returns the best order on the way.
func (c *Cutter) Divide(ctx context.Context, start []int32, enough int64, cuts int) []int32 {
	l := c.links
	d := divider{Cutter: c, order: slices.Clone(start), ends: make([]bool, len(start)+1), left: make([]int32, len(l.Problem.Tensors))}
	d.ends[0], d.ends[len(start)] = true, true
	best, least := start, int64(-1)
	for range cuts {
		d.loads = l.AppendLoads(d.loads[:0], d.order, d.left)
		peak, place := order.Peak(d.loads)
		if least < 0 || peak < least {
			best, least = slices.Clone(d.order), peak
		}
		if peak <= enough || ctx.Err() != nil || !d.divide(place) {
			break
		}
	}
	return best
}

// divider is an order with the places at which it is divided.
type divider struct {
	*Cutter
	order []int32
	ends  []bool // by place: a stretch begins there
	loads []int64
	left  []int32
	rest  []int32
}

// divide reorders the stretch of a place. It returns false if that is the place alone.
func (d *divider) divide(place int) bool {
	from, to := place, place+1
	for !d.ends[from] {
		from--
	}
	for !d.ends[to] {
		to++
	}
	if to-from == 1 {
		return false
	}
	v := d.order[place]
	d.bound[v] = d.Cut(v)
	first := make([]int32, 0, to-from)
	d.rest = d.rest[:0]
	for _, op := range d.order[from:to] {
		if d.inSet(op) {
			first = append(first, op)
		} else if op != v {
			d.rest = append(d.rest, op)
		}
	}
	n := copy(d.order[from:], first)
	d.order[from+n] = v
	copy(d.order[from+n+1:], d.rest)
	d.ends[from+n], d.ends[from+n+1] = true, true
	return true
}
