package synth

import "fmt"

func newNeoXLayer(s *shape, b *builder, index int64) *layer {
	l := &layer{name: fmt.Sprintf("layer.%d", index)}
	b.where = l.name + "."
	l.norm1 = b.norm("input_layernorm", s.Hidden, true)
	l.norm2 = b.norm("post_attention_layernorm", s.Hidden, true)
	l.q = b.adapted("attention.query_key_value", s.Hidden, 3*s.Hidden, true)
	l.out = b.linear("attention.dense", s.Hidden, s.Hidden, true)
	l.up = b.linear("mlp.dense_h_to_4h", s.Hidden, s.FFN, true)
	l.down = b.linear("mlp.dense_4h_to_h", s.FFN, s.Hidden, true)
	b.where = ""
	return l
}

// neoxLayer runs attention and the feed-forward part on the same input.
func (m *machine) neoxLayer(s *shape, net *decoder, l *layer, x *tensor) *tensor {
	normed := m.layerNorm(l.norm1, x, s.Hidden)
	fused := m.project(l.q, normed)
	turned := m.gathered(fused)
	m.drop(fused)
	u := s.tensorOf(s.Hidden)
	parts := m.split(turned, u, u, u)
	m.drop(turned)
	q, k := m.rotatePart(s, net, parts[0], parts[1])
	v := parts[2]
	attended := m.attention(q, k, v, s)
	flat := m.copied(attended)
	m.drop(attended)
	out := m.project(l.out, flat)
	m.drop(flat, q, k)
	m.drop(parts...)
	m.drop(normed)

	normed = m.layerNorm(l.norm2, x, s.Hidden)
	up := m.project(l.up, normed)
	gelu := m.gelu
	if s.FastGELU {
		gelu = m.fastGELU
	}
	active := gelu(up)
	m.drop(up)
	down := m.project(l.down, active)
	m.drop(active, normed)
	m.in("residual")
	both := m.add(down, out)
	m.in("residual")
	y := m.add(both, x)
	m.drop(both, out, down)
	return y
}

// rotatePart turns a part of each head of queries and keys.
func (m *machine) rotatePart(s *shape, net *decoder, q, k *tensor) (*tensor, *tensor) {
	m.in("rotary")
	part := q.size / s.HeadSize() * s.Turned()
	q1, q2 := m.slice(q, part), m.slice(q, q.size-part)
	k1, k2 := m.slice(k, part), m.slice(k, k.size-part)
	turnedQ := m.rotate(net, q1)
	turnedK := m.rotate(net, k1)
	wholeQ := m.concat(turnedQ, q2)
	m.drop(turnedQ)
	wholeK := m.concat(turnedK, k2)
	m.drop(turnedK, q1, q2, k1, k2)
	return wholeQ, wholeK
}

// rotate turns pairs of numbers by the angles of their positions: x cos + (-x2, x1) sin.
func (m *machine) rotate(net *decoder, x *tensor) *tensor {
	straight := m.times(x, net.cos)
	x1, x2 := m.slice(x, x.size/2), m.slice(x, x.size/2)
	negated := m.scale(x2)
	swapped := m.concat(negated, x1)
	m.drop(negated, x1, x2)
	across := m.times(swapped, net.sin)
	m.drop(swapped)
	y := m.add(straight, across)
	m.drop(straight, across)
	return y
}

// fastGELU is gelu_fast of transformers: x / 2 (1 + tanh(0.8 x (1 + 0.04 x x))), nine operators, each with its output.
func (m *machine) fastGELU(x *tensor) *tensor {
	m.in("mlp.act")
	halved, scaled := m.scale(x), m.scale(x)
	small := m.scale(x)
	square := m.times(small, x)
	m.drop(small)
	shifted := m.shift(square)
	m.drop(square)
	inner := m.times(scaled, shifted)
	m.drop(scaled, shifted)
	tanh := m.pointwise(inner, x.size, false, true)
	m.drop(inner)
	one := m.shift(tanh)
	m.drop(tanh)
	y := m.times(halved, one)
	m.drop(halved, one)
	return y
}
