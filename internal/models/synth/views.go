package synth

// Operators that return what they are given, or parts of it, or copies.

// copied makes a tensor contiguous. The gradient needs no copy.
func (m *machine) copied(x *tensor) *tensor {
	n := m.node(1, x)
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	m.passesOn(n)
	return y
}

// reshaped is the same tensor of another shape, whose gradient is a view.
func (m *machine) reshaped(x *tensor) *tensor {
	n := m.node(1, x)
	m.passesOn(n)
	return n.sees(x.share())
}

// passesOn has the backward pass of n return a view of its gradient.
func (m *machine) passesOn(n *node) {
	if n != nil {
		n.back = func(grads []*tensor) []*tensor { return []*tensor{grads[0].part(grads[0].size)} }
	}
}

// gathered is the same tensor in another order, whose gradient is copied into that of the input.
func (m *machine) gathered(x *tensor) *tensor {
	n := m.node(1, x)
	if n != nil {
		n.back = func([]*tensor) []*tensor {
			m.moves(2 * x.size)
			g := m.alloc(x.size, temporary)
			g.view = true
			return []*tensor{g}
		}
	}
	return n.sees(x.share())
}

// slice returns a part of a tensor. Its gradient is that of the whole, with zeroes.
func (m *machine) slice(x *tensor, size int64) *tensor {
	n := m.node(1, x)
	m.returns(n, x.size, 2*x.size)
	return n.sees(x.part(size))
}

// split returns parts of a tensor, whose gradients are put together again.
func (m *machine) split(x *tensor, sizes ...int64) []*tensor {
	n := m.node(len(sizes), x)
	m.returns(n, x.size, 2*x.size)
	var parts []*tensor
	for i, size := range sizes {
		p := n.sees(x.part(size))
		p.slot = i
		parts = append(parts, p)
	}
	return parts
}

// concat puts tensors side by side. Their gradients are views.
func (m *machine) concat(tensors ...*tensor) *tensor {
	n := m.node(1, tensors...)
	size := int64(0)
	var sizes []int64
	for _, t := range tensors {
		size += t.size
		sizes = append(sizes, t.size)
	}
	y := n.makes(m.alloc(size, activation))
	m.moves(2 * size)
	if n == nil {
		return y
	}
	n.back = func(grads []*tensor) []*tensor {
		out := make([]*tensor, len(sizes))
		for i, size := range sizes {
			if n.needs(i) {
				out[i] = grads[0].part(size)
			}
		}
		return out
	}
	return y
}
