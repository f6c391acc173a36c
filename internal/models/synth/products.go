package synth

import "gm/internal/models/shapes"

// product is a multiplication by a matrix, as its backward pass knows it.
type product struct {
	*node
	weight, bias *param // no bias: nil
	size, tokens int64  // of the input
	flops        float64
}

// multiply multiplies by a matrix, and adds a bias if there is one.
func (m *machine) multiply(weight, bias *param, x *tensor) *tensor {
	inputs := []*tensor{x, weight.use(m)}
	if bias != nil {
		inputs = append(inputs, bias.use(m))
	}
	n := m.node(1, inputs...)
	if n != nil && n.needs(1) {
		m.keep(n, x)
	}
	if n != nil && n.needs(0) {
		m.keep(n, &tensor{})
	}
	p := &product{node: n, weight: weight, bias: bias, size: x.size, tokens: x.size / (weight.columns * weight.element)}
	rows := weight.rows / weight.stack
	p.flops = shapes.ProductFLOPs(p.tokens, rows, weight.columns)
	y := n.makes(m.alloc(p.tokens*rows*weight.element, activation))
	m.warmUp(bias != nil)
	m.computes(p.flops)
	if n != nil {
		n.back = func([]*tensor) []*tensor { return p.backward(m) }
	}
	return y
}

// backward returns the gradient of the input first where there is a bias (addmm), that of the matrix first where there is none (mm).
func (p *product) backward(m *machine) []*tensor {
	out := make([]*tensor, len(p.into))
	if p.bias == nil {
		out[1] = p.ofMatrix(m)
		out[0] = p.ofInput(m)
		return out
	}
	out[0] = p.ofInput(m)
	out[1] = p.ofMatrix(m)
	if p.needs(2) {
		out[2] = m.sumRows(p.tokens, p.weight.rows, half)
	}
	return out
}

func (p *product) ofInput(m *machine) *tensor {
	if !p.needs(0) {
		return nil
	}
	g := m.alloc(p.size, temporary)
	g.view = true
	m.warmUp(false)
	m.computes(p.flops)
	return g
}

// ofMatrix returns a gradient that is transposed, and so a view, where there is no bias.
func (p *product) ofMatrix(m *machine) *tensor {
	if !p.needs(1) {
		return nil
	}
	g := m.alloc(p.weight.bytes(), gradient)
	g.view = p.bias == nil
	m.warmUp(false)
	m.computes(p.flops)
	return g
}

// project applies a linear layer, and its adapters in single precision if it has any.
func (m *machine) project(l *linear, x *tensor) *tensor {
	m.in(l.name)
	base := m.multiply(l.weight, l.bias, x)
	if l.down == nil {
		return base
	}
	wide := m.cast(x, x.size/half*single)
	small := m.multiply(l.down, nil, wide)
	lifted := m.multiply(l.up, nil, small)
	m.drop(small)
	scaled := m.scale(lifted)
	m.drop(lifted)
	sum := m.add(base, scaled)
	m.drop(scaled, base)
	y := m.cast(sum, base.size)
	m.drop(sum, wide)
	return y
}

// warmUp allocates, for the first product of each thread, the workspace of cuBLAS, and for the first that adds a bias that of cuBLASLt.
// The forward and the backward pass are threads of their own.
func (m *machine) warmUp(bias bool) {
	w := &m.warm[0]
	if m.at.phase != phaseForward {
		w = &m.warm[1]
	}
	if !w.blas && !m.halted {
		w.blas = true
		m.alloc(blasSpace, temporary)
	}
	if bias && !w.light && !m.halted {
		w.light = true
		m.alloc(lightSpace, temporary)
	}
}
