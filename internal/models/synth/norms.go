package synth

// layerNorm normalizes, in one kernel.
func (m *machine) layerNorm(p *norm, x *tensor, hidden int64) *tensor {
	m.in(p.name)
	inputs := []*tensor{x, p.weight.use(m), p.bias.use(m)}
	n := m.node(1, inputs...)
	m.keep(n, x, &tensor{})
	tokens := x.size / (half * hidden)
	y := n.makes(m.alloc(x.size, activation))
	mean, deviation := m.alloc(statisticBytes*tokens, activation), m.alloc(statisticBytes*tokens, activation)
	m.moves(2 * x.size)
	m.keep(n, mean, deviation)
	m.drop(mean, deviation)
	if n == nil {
		return y
	}
	n.back = func(grads []*tensor) []*tensor {
		m.moves(4 * x.size)
		out := make([]*tensor, len(inputs))
		if n.needs(0) {
			out[0] = m.alloc(x.size, temporary)
		}
		for i := 1; i < len(inputs); i++ {
			if n.needs(i) {
				out[i] = m.alloc(inputs[i].size, gradient)
			}
		}
		return out
	}
	return y
}

// rmsNorm normalizes as the Llama of transformers does: operator by operator, in single precision.
func (m *machine) rmsNorm(p *norm, x *tensor, hidden int64) *tensor {
	m.in(p.name)
	statistic := statisticBytes * x.size / (half * hidden)
	wide := m.cast(x, 2*x.size)
	square := m.power(wide)
	variance := m.mean(square, statistic)
	m.drop(square)
	shifted := m.shift(variance)
	root := m.rsqrt(shifted)
	m.drop(shifted)
	scaled := m.times(wide, root)
	m.drop(root, wide)
	narrow := m.cast(scaled, x.size)
	y := m.weighted(p.weight, narrow, x.size/(half*hidden))
	m.drop(narrow, scaled, variance)
	return y
}

// power squares or cubes. Its gradient takes a power and two products.
func (m *machine) power(x *tensor) *tensor {
	n := m.node(1, x)
	m.keep(n, x)
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	if n != nil {
		n.back = func(grads []*tensor) []*tensor {
			power := m.alloc(x.size, temporary)
			twice := m.alloc(x.size, temporary)
			out := m.alloc(x.size, temporary)
			m.drop(twice, power)
			m.moves(7 * x.size)
			return []*tensor{out}
		}
	}
	return y
}

// mean averages the numbers of each token.
func (m *machine) mean(x *tensor, size int64) *tensor { return m.pointwise(x, size, false, false) }

// shift adds a number: the gradient is that of the output.
func (m *machine) shift(x *tensor) *tensor {
	n := m.node(1, x)
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	if n != nil {
		n.back = func(grads []*tensor) []*tensor { return []*tensor{grads[0].share()} }
	}
	return y
}

// rsqrt takes one over the root. Its gradient takes a power and two products.
func (m *machine) rsqrt(x *tensor) *tensor {
	n := m.node(1, x)
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	m.keep(n, y)
	if n != nil {
		n.back = func(grads []*tensor) []*tensor {
			negated, cube := m.alloc(x.size, temporary), m.alloc(x.size, temporary)
			out := m.alloc(x.size, temporary)
			m.drop(cube, negated)
			m.moves(7 * x.size)
			return []*tensor{out}
		}
	}
	return y
}

// weighted multiplies each token by a vector.
func (m *machine) weighted(p *param, x *tensor, tokens int64) *tensor {
	w := p.use(m)
	n := m.node(1, w, x)
	if n != nil && n.needs(0) {
		m.keep(n, x)
	}
	m.keep(n, &tensor{})
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	if n == nil {
		return y
	}
	n.back = func(grads []*tensor) []*tensor {
		out := make([]*tensor, 2)
		if n.needs(1) {
			out[1] = m.alloc(x.size, temporary)
			m.moves(2 * x.size)
		}
		if n.needs(0) {
			out[0] = m.alloc(x.size, temporary)
			m.moves(3 * x.size)
		}
		return out
	}
	n.sum = func(out []*tensor) {
		if product := out[0]; product != nil {
			out[0] = m.sumRows(tokens, p.rows, half)
			m.drop(product)
		}
	}
	return y
}
