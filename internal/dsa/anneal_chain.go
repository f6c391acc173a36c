package dsa

import (
	"math"
	"slices"
)

// chain changes a pass: it gives an item another turn, and places anew only what that can have an effect on.
type chain struct {
	pass
	m    *model
	goal int64 // units: what is above counts

	peaks []int64 // units: the highest end of the items up to each position
	above []int64 // units: how far these are above the goal, in all

	// Of the change that is tried.
	touched []int64 // units, for each section: the lowest address at which something changed
	log     []moved
	trial   [2][]int64 // peaks and above as they would be

	best  []int64 // the bases that gave the least peak
	least int64   // units
}

// moved is an item that was placed anew.
type moved struct {
	item int32
	from int64 // units: its base before
}

// newChain begins with a layout that a pass has made by an order.
func newChain(m *model, from start, goal int64) *chain {
	n := len(from.order)
	c := &chain{
		pass: *newPass(m, slices.Clone(from.order)), m: m, goal: goal, peaks: make([]int64, n), above: make([]int64, n),
		trial: [2][]int64{make([]int64, n), make([]int64, n)}, touched: make([]int64, m.sections()),
		best: slices.Clone(from.bases), least: from.peak,
	}
	for s := range c.touched {
		c.touched[s] = math.MaxInt64
	}
	above := int64(0)
	for q, i := range c.order {
		c.base[i] = from.bases[i]
		c.placed.insert(m.of(i), c.base[i])
		top := c.base[i] + m.items[i].top
		c.peak = max(c.peak, top)
		above += max(0, top-goal)
		c.peaks[q], c.above[q] = c.peak, above
	}
	return c
}

// cost weighs a layout by its peak and by what is above the goal.
type cost func(peak, above int64) float64

// try moves the item at position a to position b, and takes that back when it costs more than a limit.
func (c *chain) try(a, b int, of cost, limit float64) bool {
	x, first := c.order[a], min(a, b)
	c.shift(a, b)
	c.log = c.log[:0]
	c.touch(x, c.base[x])
	peak, above := c.upTo(first)
	for q := first; q < len(c.order); q++ {
		i := c.order[q]
		if i == x || c.affected(i) {
			c.placeAnew(i)
		}
		top := c.base[i] + c.m.items[i].top
		peak = max(peak, top)
		above += max(0, top-c.goal)
		if of(peak, above) > limit {
			c.untouch(x)
			c.undo()
			c.shift(b, a)
			return false
		}
		c.trial[0][q], c.trial[1][q] = peak, above
	}
	c.untouch(x)
	c.placed.looked += int64(len(c.order)-first) / 2
	copy(c.peaks[first:], c.trial[0][first:])
	copy(c.above[first:], c.trial[1][first:])
	if c.peak = peak; peak < c.least {
		c.least = peak
		copy(c.best, c.base)
	}
	return true
}

// upTo returns the highest end of the fixed items and those before a position, and how far those are above the goal.
func (c *chain) upTo(position int) (peak, above int64) {
	if position > 0 {
		return c.peaks[position-1], c.above[position-1]
	}
	for i := range c.m.items {
		if it := &c.m.items[i]; it.fixed != Free {
			peak = max(peak, it.fixed+it.top)
		}
	}
	return peak, 0
}

// shift gives the item at position a the position b.
func (c *chain) shift(a, b int) {
	x := c.order[a]
	if a < b {
		copy(c.order[a:b], c.order[a+1:b+1])
	} else {
		copy(c.order[b+1:a+1], c.order[b:a])
	}
	c.order[b] = x
	for q := min(a, b); q <= max(a, b); q++ {
		c.position[c.order[q]] = int32(q)
	}
}

// placeAnew gives an item the lowest base that those before it leave now.
func (c *chain) placeAnew(item int32) {
	base, was := c.placed.fit(c.m, item, c.position), c.base[item]
	c.touch(item, min(base, was))
	if base == was {
		return
	}
	c.log = append(c.log, moved{item, was})
	c.placed.move(c.m.of(item), was, base)
	c.base[item] = base
}

// undo takes the changes back, the last first.
func (c *chain) undo() {
	for k := len(c.log) - 1; k >= 0; k-- {
		l := c.log[k]
		c.untouch(l.item)
		c.placed.move(c.m.of(l.item), c.base[l.item], l.from)
		c.base[l.item] = l.from
	}
}

// touch notes that an item has changed from a base upwards.
func (c *chain) touch(item int32, base int64) {
	for _, r := range c.m.of(item) {
		over := c.touched[r.lo:r.hi]
		for s := range over {
			over[s] = min(over[s], base+r.low)
		}
	}
}

// untouch forgets what has changed where an item lives.
func (c *chain) untouch(item int32) {
	for _, r := range c.m.of(item) {
		over := c.touched[r.lo:r.hi]
		for s := range over {
			over[s] = math.MaxInt64
		}
	}
}

// affected says whether something changed below the top of a rectangle of an item.
func (c *chain) affected(item int32) bool {
	for _, r := range c.m.of(item) {
		top := c.base[item] + r.low + r.size
		for _, low := range c.touched[r.lo:r.hi] {
			if low < top {
				return true
			}
		}
	}
	return false
}
