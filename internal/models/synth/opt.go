package synth

import "fmt"

func newOPTLayer(s *shape, b *builder, index int64) *layer {
	l := &layer{name: fmt.Sprintf("layer.%d", index)}
	b.where = l.name + "."
	l.k = b.linear("self_attn.k_proj", s.Hidden, s.Hidden, true)
	l.v = b.adapted("self_attn.v_proj", s.Hidden, s.Hidden, true)
	l.q = b.adapted("self_attn.q_proj", s.Hidden, s.Hidden, true)
	l.out = b.linear("self_attn.out_proj", s.Hidden, s.Hidden, true)
	l.norm1 = b.norm("self_attn_layer_norm", s.Hidden, true)
	l.up = b.linear("mlp.fc1", s.Hidden, s.FFN, true)
	l.down = b.linear("mlp.fc2", s.FFN, s.Hidden, true)
	l.norm2 = b.norm("final_layer_norm", s.Hidden, true)
	b.where = ""
	return l
}

// optLayer scales the queries, drops out twice, and flattens what it adds up.
func (m *machine) optLayer(s *shape, l *layer, x *tensor) *tensor {
	normed := m.layerNorm(l.norm1, x, s.Hidden)
	unscaled := m.project(l.q, normed)
	q := m.scale(unscaled)
	m.drop(unscaled)
	k, v := m.project(l.k, normed), m.project(l.v, normed)
	attended := m.attention(q, k, v, s)
	out := m.project(l.out, attended)
	m.drop(attended, q, k, v, normed)
	dropped := m.dropout(out)
	m.drop(out)
	m.in("residual")
	sum := m.add(x, dropped)
	m.drop(dropped)
	residual := m.reshaped(sum)
	m.drop(sum)

	normed = m.layerNorm(l.norm2, residual, s.Hidden)
	up := m.project(l.up, normed)
	m.drop(normed)
	active := m.relu(up)
	m.drop(up)
	down := m.project(l.down, active)
	m.drop(active)
	dropped = m.dropout(down)
	m.drop(down)
	m.in("residual")
	sum = m.add(residual, dropped)
	m.drop(dropped, residual)
	y := m.reshaped(sum)
	m.drop(sum)
	return y
}
