package rigid

import (
	"gm/internal/dsa"
	"gm/internal/dsa/sections"
)

// Pass is a layout made by an order: the items that are not fixed, one after another, each at the lowest base that the items
// before it leave.
type Pass struct {
	Order    []int32
	Position []int32 // of each item in the order; -1 when it is fixed
	Base     []int64 // units, of each item
	Placed   Shelves
	Peak     int64 // units
}

// NewPass places the fixed items.
func NewPass(m *Model, order []int32) *Pass {
	c := &Pass{
		Order: order, Position: make([]int32, len(m.Items)), Base: make([]int64, len(m.Items)),
		Placed: newShelves(m),
	}
	var fixed []Block
	for i := range m.Items {
		if it := &m.Items[i]; it.Fixed != dsa.Free {
			c.Position[i], c.Base[i] = -1, it.Fixed
			c.Peak = max(c.Peak, it.Fixed+it.Top)
			fixed = blocksOf(fixed, m.Of(int32(i)), it.Fixed)
		}
	}
	c.Placed.insertAll(fixed)
	for q, i := range order {
		c.Position[i] = int32(q)
	}
	return c
}

// Run places the items of the order and returns how many. It ends early when stop returns true for the peak reached so far.
func (c *Pass) Run(m *Model, stop sections.Stop) int {
	for q, i := range c.Order {
		c.Base[i] = c.Placed.Fit(m, i, c.Position)
		c.Placed.Insert(m.Of(i), c.Base[i])
		if top := c.Base[i] + m.Items[i].Top; top > c.Peak || q%sections.StopEvery == 0 {
			if c.Peak = max(c.Peak, top); stop(c.Peak) {
				return q + 1
			}
		}
	}
	return len(c.Order)
}
