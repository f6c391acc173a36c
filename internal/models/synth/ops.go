package synth

// Operators in half precision, on tensors that are only a number of bytes. Each allocates what its kernel returns, after it has saved what
// the backward pass reads of its inputs, and before it saves what that reads of its outputs.

// pointwise makes a tensor out of one, by an operator whose backward pass reads its input, its output, or neither.
func (m *machine) pointwise(x *tensor, size int64, input, output bool) *tensor {
	n := m.node(1, x)
	if input {
		m.keep(n, x)
	}
	y := n.makes(m.alloc(size, activation))
	m.moves(x.size + size)
	if output {
		m.keep(n, y)
	}
	m.returns(n, x.size, x.size+2*size)
	return y
}

// returns has the backward pass of n allocate the gradient of its input, and move bytes.
func (m *machine) returns(n *node, size, moved int64) {
	if n == nil {
		return
	}
	n.back = func([]*tensor) []*tensor {
		m.moves(moved)
		return []*tensor{m.alloc(size, temporary)}
	}
}

// scale multiplies by a number.
func (m *machine) scale(x *tensor) *tensor { return m.pointwise(x, x.size, false, false) }

// cast converts to numbers of another size.
func (m *machine) cast(x *tensor, size int64) *tensor { return m.pointwise(x, size, false, false) }

// relu, gelu and silu are activation functions.
func (m *machine) relu(x *tensor) *tensor { return m.pointwise(x, x.size, false, true) }
func (m *machine) gelu(x *tensor) *tensor { return m.pointwise(x, x.size, true, false) }
func (m *machine) silu(x *tensor) *tensor { return m.pointwise(x, x.size, true, false) }

// add adds two tensors. The first may be in half and the second in single precision, or the second may be the same for all
// sequences. The gradient is not copied but for those.
func (m *machine) add(a, b *tensor) *tensor {
	n := m.node(1, a, b)
	y := n.makes(m.alloc(max(a.size, b.size), activation))
	m.moves(a.size + b.size + y.size)
	if n == nil {
		return y
	}
	narrow, row, wide := a.size, b.size, y.size
	n.back = func(grads []*tensor) []*tensor {
		out := make([]*tensor, 2)
		if n.needs(0) {
			out[0] = grads[0].share()
			if narrow < wide {
				m.drop(out[0])
				out[0] = m.alloc(narrow, temporary)
			}
		}
		if n.needs(1) {
			out[1] = grads[0].share()
			if row < wide {
				m.drop(out[1])
				out[1] = m.alloc(row, temporary)
			}
		}
		return out
	}
	return y
}

// times multiplies two tensors of one size. Where one is broadcast, its gradient is summed up.
func (m *machine) times(a, b *tensor) *tensor {
	n := m.node(1, a, b)
	if n != nil && n.needs(0) {
		m.keep(n, b)
	}
	if n != nil && n.needs(1) {
		m.keep(n, a)
	}
	y := n.makes(m.alloc(max(a.size, b.size), activation))
	m.moves(a.size + b.size + y.size)
	if n == nil {
		return y
	}
	of := []int64{a.size, b.size}
	n.back = func([]*tensor) []*tensor {
		out := make([]*tensor, 2)
		for i := 1; i >= 0; i-- {
			if n.needs(i) {
				out[i] = m.alloc(y.size, temporary)
				m.moves(3 * y.size)
			}
		}
		return out
	}
	n.sum = func(out []*tensor) {
		for i := 1; i >= 0; i-- {
			if out[i] != nil && of[i] < y.size {
				sum := m.alloc(of[i], temporary)
				m.drop(out[i])
				out[i] = sum
			}
		}
	}
	return y
}

// dropout zeroes some numbers and keeps a mask of a byte each.
func (m *machine) dropout(x *tensor) *tensor {
	m.in("dropout")
	n := m.node(1, x)
	mask := m.alloc(x.size/half, activation)
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2*x.size + mask.size)
	m.keep(n, mask)
	if m.halted {
		m.drop(y)
		y = &tensor{size: x.size}
	}
	m.drop(mask)
	m.returns(n, x.size, 2*x.size+mask.size)
	return y
}
