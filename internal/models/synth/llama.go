package synth

import "fmt"

func newLlamaLayer(s *shape, b *builder, index int64) *layer {
	l := &layer{name: fmt.Sprintf("layer.%d", index)}
	b.where = l.name + "."
	l.q = b.adapted("self_attn.q_proj", s.Hidden, s.Hidden, false)
	l.k = b.linear("self_attn.k_proj", s.Hidden, s.Keys(), false)
	l.v = b.adapted("self_attn.v_proj", s.Hidden, s.Keys(), false)
	l.out = b.linear("self_attn.o_proj", s.Hidden, s.Hidden, false)
	l.gate = b.linear("mlp.gate_proj", s.Hidden, s.FFN, false)
	l.up = b.linear("mlp.up_proj", s.Hidden, s.FFN, false)
	l.down = b.linear("mlp.down_proj", s.FFN, s.Hidden, false)
	l.norm1 = b.norm("input_layernorm", s.Hidden, false)
	l.norm2 = b.norm("post_attention_layernorm", s.Hidden, false)
	b.where = ""
	return l
}

// llamaLayer has RMSNorm, rotary embedding and SwiGLU.
func (m *machine) llamaLayer(s *shape, net *decoder, l *layer, x *tensor) *tensor {
	normed := m.rmsNorm(l.norm1, x, s.Hidden)
	flatQ := m.project(l.q, normed)
	q := m.gathered(flatQ)
	flatK := m.project(l.k, normed)
	k := m.gathered(flatK)
	m.drop(flatQ, flatK)
	v := m.project(l.v, normed)
	m.in("rotary")
	turnedQ := m.rotate(net, q)
	turnedK := m.rotate(net, k)
	m.drop(q, k)
	attended := m.attention(turnedQ, turnedK, v, s)
	out := m.project(l.out, attended)
	m.drop(attended, turnedQ, turnedK, v, normed)
	m.in("residual")
	residual := m.add(x, out)
	m.drop(out)

	normed = m.rmsNorm(l.norm2, residual, s.Hidden)
	gate := m.project(l.gate, normed)
	active := m.silu(gate)
	m.drop(gate)
	up := m.project(l.up, normed)
	product := m.times(active, up)
	m.drop(active, up)
	down := m.project(l.down, product)
	m.drop(product, normed)
	m.in("residual")
	y := m.add(residual, down)
	m.drop(down, residual)
	return y
}
