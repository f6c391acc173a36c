package synth

import "slices"

// node is what autograd records of an operator: where gradients go, and what its backward pass reads.
type node struct {
	at     place
	into   []edge
	grads  []*tensor // of the outputs, as they arrive
	saved  []*tensor
	region *region // that has what is saved, from first on
	first  int
	count  int
	back   func(grads []*tensor) []*tensor // gradients of the inputs, by edge, nil where there is none
	sum    func(out []*tensor)             // sums gradients up to the shapes of their inputs, if there is need
	param  *param                          // whose gradient is gathered here, in a leaf
	uses   int                             // of that parameter whose gradients have not arrived
}

// edge leads to what made an input. Its node is nil if the input needs no gradient.
type edge struct {
	*node
	slot int
}

// needs reports whether the gradient of an input is wanted.
func (n *node) needs(i int) bool { return n.into[i].node != nil }

// node records an operator of such inputs and returns nil if none needs a gradient.
func (m *machine) node(outputs int, inputs ...*tensor) *node {
	wanted := false
	for _, t := range inputs {
		wanted = wanted || t != nil && t.from != nil
	}
	if !wanted {
		return nil
	}
	n := &node{at: m.at, grads: make([]*tensor, outputs), into: make([]edge, len(inputs))}
	for i, t := range inputs {
		if t != nil && t.from != nil {
			n.into[i] = edge{t.from, t.slot}
		}
	}
	if m.again {
		return n
	}
	if m.region != nil {
		n.region, n.first = m.region, m.region.total
	}
	m.tape = append(m.tape, n)
	return n
}

// makes returns the first output of an operator, with its gradient going to n.
func (n *node) makes(t *tensor) *tensor {
	if n != nil {
		t.from = n
	}
	return t
}

// sees returns an output of an operator that is a reference to its input: no gradient goes there if n is nil.
func (n *node) sees(t *tensor) *tensor {
	t.from, t.slot, t.view = n, 0, false
	return t
}

// keep saves tensors for the backward pass of n, which is nil if there is none.
func (m *machine) keep(n *node, tensors ...*tensor) {
	switch {
	case n == nil || m.halted:
	case m.again:
		m.region.restore(m, tensors)
	case n.region != nil:
		if n.count == 0 {
			n.region.readers++
		}
		n.count += len(tensors)
		n.region.total += len(tensors)
	default:
		for _, t := range tensors {
			n.saved = append(n.saved, t.share())
		}
	}
}

// backward runs what was recorded in reverse.
func (m *machine) backward() {
	m.at.phase = phaseBackward
	for i := len(m.tape) - 1; i >= 0; i-- {
		n := m.tape[i]
		m.tape[i] = nil
		m.run(n)
	}
	m.tape = m.tape[:0]
}

// run executes one record, frees what it read, and passes its gradients on. What was recomputed is freed by the backward pass
// itself, what was saved once that has ended.
func (m *machine) run(n *node) {
	m.at.module, m.at.operator = n.at.module, n.at.operator
	var out, made []*tensor
	if slices.ContainsFunc(n.grads, func(g *tensor) bool { return g != nil }) {
		if n.count > 0 {
			made = n.region.restored(m, n)
		}
		out = n.back(n.grads)
		m.dropLast(made)
		if n.sum != nil {
			n.sum(out)
		}
	}
	m.drop(n.grads...)
	m.drop(n.saved...)
	if n.count > 0 {
		n.region.leave(m)
	}
	for i, g := range out {
		switch {
		case g == nil:
		case n.into[i].node == nil:
			m.drop(g)
		default:
			m.arrive(n.into[i], g)
		}
	}
}

// arrive adds a gradient to what has arrived: in place where nothing else refers to that.
func (m *machine) arrive(to edge, g *tensor) {
	old := to.grads[to.slot]
	switch {
	case old == nil:
		to.grads[to.slot] = g
	case !old.view && old.refs == 1:
		m.moves(3 * g.size)
		m.drop(g)
	default:
		sum := m.alloc(old.size, temporary)
		m.moves(3 * g.size)
		m.drop(old, g)
		to.grads[to.slot] = sum
	}
	if to.param != nil {
		to.param.arrived(m, to.node)
	}
}

// leafOf makes a tensor one whose gradient stays in the node returned.
func leafOf(t *tensor) *node {
	n := &node{grads: make([]*tensor, 1)}
	t.from, t.slot = n, 0
	return n
}

// hook calls a function when the gradient of a tensor is known.
func (m *machine) hook(t *tensor, call func()) *tensor {
	n := m.node(1, t)
	if n == nil {
		return t.share()
	}
	n.back = func(grads []*tensor) []*tensor {
		call()
		g := grads[0]
		grads[0] = nil
		return []*tensor{g}
	}
	return n.sees(t.share())
}
