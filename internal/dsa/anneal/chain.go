package anneal

import (
	"math"
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/rigid"
)

// chain changes a pass: it gives an item another position, and places anew only the items that this can affect.
type chain struct {
	rigid.Pass
	m    *rigid.Model
	goal int64 // units: only heights above it count

	peaks []int64 // units: the highest end of the items up to each position
	above []int64 // units: the sum of their heights above the goal

	// The change that is being tried.
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

// newChain returns a chain that begins with the layout of a pass.
func newChain(m *rigid.Model, from orders.Start, goal int64) *chain {
	n := len(from.Order)
	c := &chain{
		Pass: *rigid.NewPass(m, slices.Clone(from.Order)), m: m, goal: goal, peaks: make([]int64, n), above: make([]int64, n),
		trial: [2][]int64{make([]int64, n), make([]int64, n)}, touched: make([]int64, m.Sections()),
		best: slices.Clone(from.Bases), least: from.Peak,
	}
	for s := range c.touched {
		c.touched[s] = math.MaxInt64
	}
	above := int64(0)
	for q, i := range c.Order {
		c.Base[i] = from.Bases[i]
		c.Placed.Insert(m.Of(i), c.Base[i])
		top := c.Base[i] + m.Items[i].Top
		c.Peak = max(c.Peak, top)
		above += max(0, top-goal)
		c.peaks[q], c.above[q] = c.Peak, above
	}
	return c
}

// cost returns the cost of a layout, given its peak and the sum of heights above the goal.
type cost func(peak, above int64) float64

// try moves the item at position a to position b, and undoes that when the cost is above the limit.
func (c *chain) try(a, b int, of cost, limit float64) bool {
	x, first := c.Order[a], min(a, b)
	c.shift(a, b)
	c.log = c.log[:0]
	c.touch(x, c.Base[x])
	peak, above := c.upTo(first)
	for q := first; q < len(c.Order); q++ {
		i := c.Order[q]
		if i == x || c.affected(i) {
			c.placeAnew(i)
		}
		top := c.Base[i] + c.m.Items[i].Top
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
	c.Placed.Visited += int64(len(c.Order)-first) / 2
	copy(c.peaks[first:], c.trial[0][first:])
	copy(c.above[first:], c.trial[1][first:])
	if c.Peak = peak; peak < c.least {
		c.least = peak
		copy(c.best, c.Base)
	}
	return true
}

// upTo returns the highest end of the fixed items and those before a position, and the sum of their heights above the goal.
func (c *chain) upTo(position int) (peak, above int64) {
	if position > 0 {
		return c.peaks[position-1], c.above[position-1]
	}
	for i := range c.m.Items {
		if it := &c.m.Items[i]; it.Fixed != dsa.Free {
			peak = max(peak, it.Fixed+it.Top)
		}
	}
	return peak, 0
}

// shift gives the item at position a the position b.
func (c *chain) shift(a, b int) {
	x := c.Order[a]
	if a < b {
		copy(c.Order[a:b], c.Order[a+1:b+1])
	} else {
		copy(c.Order[b+1:a+1], c.Order[b:a])
	}
	c.Order[b] = x
	for q := min(a, b); q <= max(a, b); q++ {
		c.Position[c.Order[q]] = int32(q)
	}
}

// placeAnew places an item at the lowest base that the items before it leave.
func (c *chain) placeAnew(item int32) {
	base, was := c.Placed.Fit(c.m, item, c.Position), c.Base[item]
	c.touch(item, min(base, was))
	if base == was {
		return
	}
	c.log = append(c.log, moved{item, was})
	c.Placed.Move(c.m.Of(item), was, base)
	c.Base[item] = base
}

// undo reverts the changes, the last first.
func (c *chain) undo() {
	for k := len(c.log) - 1; k >= 0; k-- {
		l := c.log[k]
		c.untouch(l.item)
		c.Placed.Move(c.m.Of(l.item), c.Base[l.item], l.from)
		c.Base[l.item] = l.from
	}
}

// touch records that an item has changed from a base upwards.
func (c *chain) touch(item int32, base int64) {
	for _, r := range c.m.Of(item) {
		over := c.touched[r.Lo:r.Hi]
		for s := range over {
			over[s] = min(over[s], base+r.Low)
		}
	}
}

// untouch clears the record of changes where an item lives.
func (c *chain) untouch(item int32) {
	for _, r := range c.m.Of(item) {
		over := c.touched[r.Lo:r.Hi]
		for s := range over {
			over[s] = math.MaxInt64
		}
	}
}

// affected reports whether something changed below the top of a rectangle of an item.
func (c *chain) affected(item int32) bool {
	for _, r := range c.m.Of(item) {
		top := c.Base[item] + r.Low + r.Size
		for _, low := range c.touched[r.Lo:r.Hi] {
			if low < top {
				return true
			}
		}
	}
	return false
}
