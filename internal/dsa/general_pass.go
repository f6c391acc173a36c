package dsa

// pass is a layout made by an order: the items that are not fixed, one after another, each at the lowest base that those
// before it leave.
type pass struct {
	order    []int32
	position []int32 // of each item in the order; -1 when it is fixed
	base     []int64 // units, of each item
	placed   shelves
	peak     int64 // units
}

// newPass places the fixed items.
func newPass(m *model, order []int32) *pass {
	c := &pass{
		order: order, position: make([]int32, len(m.items)), base: make([]int64, len(m.items)),
		placed: newShelves(m),
	}
	var fixed []block
	for i := range m.items {
		if it := &m.items[i]; it.fixed != Free {
			c.position[i], c.base[i] = -1, it.fixed
			c.peak = max(c.peak, it.fixed+it.top)
			fixed = blocksOf(fixed, m.of(int32(i)), it.fixed)
		}
	}
	c.placed.insertAll(fixed)
	for q, i := range order {
		c.position[i] = int32(q)
	}
	return c
}

// run places the items of the order and returns how many. It gives up when stop says so of the peak reached so far.
func (c *pass) run(m *model, stop stopFunc) int {
	for q, i := range c.order {
		c.base[i] = c.placed.fit(m, i, c.position)
		c.placed.insert(m.of(i), c.base[i])
		if top := c.base[i] + m.items[i].top; top > c.peak || q%stopEvery == 0 {
			if c.peak = max(c.peak, top); stop(c.peak) {
				return q + 1
			}
		}
	}
	return len(c.order)
}
