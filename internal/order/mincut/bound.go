// Package mincut proves lower bounds of the load of any order, each by a minimum cut.
//
// When operator v runs, the operators that have run are a set that holds with each operator all that come before it, those before v among
// them, and neither v nor what comes behind v. What is in memory then are the tensors that some operator of the set touches and some other
// one does too. The least of that over all such sets is a minimum cut, and the load of every order is at least the cut of each operator.
// All operators that are bound to be before or behind v are merged into the two ends, so the cut is one in the graph of those that are free.
package mincut

import (
	"slices"

	"gm/internal/order"
)

// Cutter computes the bounds of single operators of a problem.
type Cutter struct {
	// Turns are pairs of operators beside those of the problem, the first of which comes before the second.
	Turns [][2]int32

	links *order.Links
	side  []side
	free  []int32 // operators that are on neither side
	nodes []int32 // by operator: its node in the network, if it is free
	stack []int32
	net   network
	bound []int64 // by operator; -1 for one that is not computed
}

// side is where an operator is bound to be.
type side uint8

const (
	free   side = iota
	before      // it runs before v
	behind      // it is v, or runs behind it
)

// NewCutter returns a cutter for a problem.
func NewCutter(l *order.Links) *Cutter {
	n := l.Problem.Ops()
	c := &Cutter{links: l, side: make([]side, n), bound: make([]int64, n), nodes: make([]int32, n)}
	for i := range c.bound {
		c.bound[i] = -1
	}
	return c
}

// Bound returns a number of bytes: in every order at least as many are in memory while operator v runs. There are no Turns.
func (c *Cutter) Bound(v int32) int64 {
	if c.bound[v] < 0 {
		c.bound[v] = c.Cut(v)
	}
	return c.bound[v]
}

// Known reports whether Bound has been computed for an operator.
func (c *Cutter) Known(v int32) bool { return c.bound[v] >= 0 }

// Cut returns that of every order that keeps to Turns: the least of the cut where nothing is written over anything, and of those where v
// writes a tensor over another one, which nobody behind v touches then.
func (c *Cutter) Cut(v int32) int64 {
	tensor, ends := c.places(v)
	if len(ends) == 0 {
		return c.cutWith(v, none) + c.own(v, tensor)
	}
	least, at := int64(-1), int32(none)
	for _, over := range append(ends, none) {
		bytes := c.cutWith(v, over) + c.own(v, tensor)
		if over != none {
			bytes -= c.links.Problem.Tensors[tensor].Bytes
		}
		if least < 0 || bytes < least {
			least, at = bytes, over
		}
	}
	if at != none {
		c.cutWith(v, at) // the sides are those of the least
	}
	return least
}

// Apart returns those of some operators that may come before v as well as behind it.
func (c *Cutter) Apart(v int32, ops []int32) []int32 {
	c.separate(v, none)
	var apart []int32
	for _, op := range ops {
		if c.side[op] == free {
			apart = append(apart, op)
		}
	}
	return apart
}

// Set returns a set of operators, ascending, that can run before v so that exactly Bound bytes are in memory while v runs, if what may be
// written over others is.
func (c *Cutter) Set(v int32) []int32 {
	c.bound[v] = c.Cut(v)
	var set []int32
	for op := range c.side {
		if c.inSet(int32(op)) {
			set = append(set, int32(op))
		}
	}
	return set
}

// inSet reports whether an operator is in the set of the last cut.
func (c *Cutter) inSet(op int32) bool {
	return c.side[op] == before || c.side[op] == free && c.net.reached(c.nodes[op])
}

const none = -1

// places returns the tensor that v may write over others, and those that can end at v. If several of its tensors may, it returns that none does:
// own leaves all of them out then.
func (c *Cutter) places(v int32) (tensor int32, ends []int32) {
	p := c.links.Problem
	c.separate(v, none)
	tensor = none
	for _, t := range c.links.Touched.Of(v) {
		if p.Tensors[t].Made() != v {
			continue
		}
		over := slices.DeleteFunc(slices.Clone(p.Tensors[t].Over), func(over int32) bool { return !c.canEnd(over, t, v) })
		switch {
		case len(over) == 0:
		case tensor != none:
			return none, nil
		default:
			tensor, ends = t, over
		}
	}
	return tensor, ends
}

// canEnd reports whether v may be the last to touch a tensor that has the room for another one.
func (c *Cutter) canEnd(old, t, v int32) bool {
	p := c.links.Problem
	return p.Tensors[old].Bytes >= p.Tensors[t].Bytes &&
		!slices.ContainsFunc(p.Tensors[old].Ops, func(op int32) bool { return op != v && c.side[op] == behind })
}

// cutWith returns the least bytes in memory while v runs, without the tensors that it makes, if it is the last that touches a tensor.
func (c *Cutter) cutWith(v, ended int32) int64 {
	c.separate(v, ended)
	c.net.reset(2 + len(c.free))
	sum := c.links.Problem.Temp[v]
	for i := range c.links.Problem.Tensors {
		t := &c.links.Problem.Tensors[i]
		sum += c.addTensor(t)
	}
	for _, op := range c.free {
		for _, pred := range c.links.Preds.Of(op) {
			if c.side[pred] == free {
				c.net.add(c.nodes[op], c.nodes[pred], infinite)
			}
		}
	}
	for _, turn := range c.Turns {
		if c.side[turn[0]] == free && c.side[turn[1]] == free {
			c.net.add(c.nodes[turn[1]], c.nodes[turn[0]], infinite)
		}
	}
	return sum + c.net.flow()
}

const (
	source = 0 // the operators before v
	sink   = 1 // v and those behind it
)

// separate finds the side of each operator, if v is the last that touches a tensor.
func (c *Cutter) separate(v, ended int32) {
	clear(c.side)
	c.spread(v, before, &c.links.Preds, 1)
	if ended != none {
		for _, op := range c.links.Problem.Tensors[ended].Ops {
			if op != v && c.side[op] == free {
				c.side[op] = before
				c.spread(op, before, &c.links.Preds, 1)
			}
		}
	}
	c.spread(v, behind, &c.links.Succs, 0)
	c.side[v] = behind
	c.free = c.free[:0]
	for op, s := range c.side {
		if s == free {
			c.nodes[op] = int32(2 + len(c.free))
			c.free = append(c.free, int32(op))
		}
	}
}

// spread puts on a side what is next to v, and so on; from is the place of an operator in the turns that lead on from it.
func (c *Cutter) spread(v int32, s side, next *order.Lists, from int) {
	c.stack = append(c.stack[:0], v)
	for len(c.stack) > 0 {
		op := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		for _, other := range next.Of(op) {
			if c.side[other] != s {
				c.side[other] = s
				c.stack = append(c.stack, other)
			}
		}
		for _, turn := range c.Turns {
			if other := turn[1-from]; turn[from] == op && c.side[other] != s {
				c.side[other] = s
				c.stack = append(c.stack, other)
			}
		}
	}
}

// own returns the bytes of the tensors that v makes, but for those that it may write over others: of these only the given one counts.
func (c *Cutter) own(v, counts int32) int64 {
	p := c.links.Problem
	var bytes int64
	for _, t := range c.links.Touched.Of(v) {
		mayEnd := func(over int32) bool { return c.canEnd(over, t, v) }
		if p.Tensors[t].Made() == v && (t == counts || !slices.ContainsFunc(p.Tensors[t].Over, mayEnd)) {
			bytes += p.Tensors[t].Bytes
		}
	}
	return bytes
}

// addTensor adds a tensor to the network, or returns its bytes if it is in memory whatever the free operators do.
func (c *Cutter) addTensor(t *order.Tensor) int64 {
	from := c.at(t.Made())
	if from == sink {
		return 0
	}
	to, readers := int32(-1), 0
	for _, op := range t.Ops[1:] {
		switch node := c.at(op); {
		case node == sink && from == source:
			return t.Bytes
		case node == sink:
			c.net.add(from, sink, t.Bytes)
			return 0
		case node == source:
		default:
			to = node
			readers++
		}
	}
	switch readers {
	case 0:
		return 0
	case 1:
		c.net.add(from, to, t.Bytes)
		return 0
	}
	hub := c.net.grow()
	c.net.add(from, hub, t.Bytes)
	for _, op := range t.Ops[1:] {
		if c.side[op] == free {
			c.net.add(hub, c.nodes[op], infinite)
		}
	}
	return 0
}

// at returns the node of an operator.
func (c *Cutter) at(op int32) int32 {
	switch c.side[op] {
	case before:
		return source
	case behind:
		return sink
	}
	return c.nodes[op]
}
