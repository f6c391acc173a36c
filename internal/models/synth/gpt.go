package synth

import "fmt"

func newGPTLayer(s *shape, b *builder, index int64) *layer {
	l := &layer{name: fmt.Sprintf("layer.%d", index)}
	b.where = l.name + "."
	l.norm1 = b.norm("ln_1", s.Hidden, true)
	l.q = b.adapted("attn.c_attn", s.Hidden, 3*s.Hidden, true)
	l.out = b.linear("attn.c_proj", s.Hidden, s.Hidden, true)
	l.norm2 = b.norm("ln_2", s.Hidden, true)
	l.up = b.linear("mlp.c_fc", s.Hidden, s.FFN, true)
	l.down = b.linear("mlp.c_proj", s.FFN, s.Hidden, true)
	b.where = ""
	return l
}

// gptLayer has queries, keys and values of one product.
func (m *machine) gptLayer(s *shape, l *layer, x *tensor) *tensor {
	normed := m.layerNorm(l.norm1, x, s.Hidden)
	fused := m.project(l.q, normed)
	u := s.tensorOf(s.Hidden)
	parts := m.split(fused, u, u, u)
	m.drop(fused)
	attended := m.attention(parts[0], parts[1], parts[2], s)
	out := m.project(l.out, attended)
	m.drop(attended, normed)
	m.drop(parts...)
	dropped := m.dropout(out)
	m.drop(out)
	m.in("residual")
	residual := m.add(dropped, x)

	normed = m.layerNorm(l.norm2, residual, s.Hidden)
	up := m.project(l.up, normed)
	active := m.tanhGELU(up)
	m.drop(up)
	down := m.project(l.down, active)
	m.drop(active, normed)
	last := m.dropout(down)
	m.drop(down)
	m.in("residual")
	y := m.add(residual, last)
	m.drop(dropped, last, residual)
	return y
}

// tanhGELU is GELU by tanh as GPT-2 has it: nine operators, each with its output.
func (m *machine) tanhGELU(x *tensor) *tensor {
	m.in("mlp.act")
	halved := m.scale(x)
	cubed := m.power(x)
	small := m.scale(cubed)
	m.drop(cubed)
	sum := m.add(x, small)
	m.drop(small)
	scaled := m.scale(sum)
	m.drop(sum)
	tanh := m.pointwise(scaled, x.size, false, true)
	m.drop(scaled)
	shifted := m.shift(tanh)
	m.drop(tanh)
	y := m.times(halved, shifted)
	m.drop(halved, shifted)
	return y
}

// mask looks whether sequences are packed, and so whether a mask is needed beyond the causal one.
func (m *machine) mask(s *shape) {
	m.in("mask")
	index := indexBytes * s.tokens
	first := m.alloc(indexBytes*s.batch, temporary)
	whole := m.alloc(index+indexBytes*s.batch, temporary)
	difference := m.alloc(index, temporary)
	m.drop(whole)
	equal := m.alloc(s.tokens, temporary)
	sums := m.alloc(index, temporary)
	if s.batch == 1 {
		m.briefly(index, scanSpace)
	} else {
		m.briefly(index)
	}
	m.drop(equal)
	each, all := m.alloc(s.batch, temporary), m.alloc(1, temporary)
	m.drop(each, all, first, difference, sums)
}
