package synth

import "fmt"

func newLlamaLayer(s *shape, b *builder, index int64) *layer {
	l := &layer{name: fmt.Sprintf("layer.%d", index)}
	b.where = l.name + "."
	if s.Latent.Keys > 0 {
		l.latent = b.latent(s)
	} else {
		b.queries(l, s)
	}
	if e := s.Experts; e.Count > 0 && index >= e.Dense {
		l.experts = b.routed(s, s.exchanged)
	} else {
		f := b.feed("mlp", s.Hidden, s.FFN)
		l.gate, l.up, l.down = f.gate, f.up, f.down
	}
	l.norm1 = b.norm("input_layernorm", s.Hidden, false)
	l.norm2 = b.norm("post_attention_layernorm", s.Hidden, false)
	b.where = ""
	return l
}

func (b *builder) queries(l *layer, s *shape) {
	l.q = b.adapted("self_attn.q_proj", s.Hidden, s.Queries(), s.QKVBias)
	l.k = b.linear("self_attn.k_proj", s.Hidden, s.Keys(), s.QKVBias)
	l.v = b.adapted("self_attn.v_proj", s.Hidden, s.Keys(), s.QKVBias)
	l.out = b.linear("self_attn.o_proj", s.Queries(), s.Hidden, s.OutBias)
	if s.HeadNorms {
		l.normQ = b.norm("self_attn.q_norm", s.HeadSize(), false)
		l.normK = b.norm("self_attn.k_norm", s.HeadSize(), false)
	}
}

// llamaLayer has RMSNorm, rotary embedding and SwiGLU, or experts.
func (m *machine) llamaLayer(s *shape, net *decoder, l *layer, x *tensor) *tensor {
	part := m.rmsNorm(l.norm1, x, s.Hidden)
	normed := m.gatherTokens(part)
	m.drop(part)
	var out *tensor
	if l.latent != nil {
		out = l.latent.run(m, s, net, normed)
	} else {
		out = m.llamaAttention(s, net, l, normed)
	}
	m.drop(normed)
	out = m.scatterTokens(out)
	m.in("residual")
	residual := m.add(x, out)
	m.drop(out)

	part = m.rmsNorm(l.norm2, residual, s.Hidden)
	normed = m.gatherTokens(part)
	m.drop(part)
	var down *tensor
	if l.experts != nil {
		down = l.experts.run(m, s, normed)
	} else {
		down = feed{l.gate, l.up, l.down}.run(m, normed)
	}
	m.drop(normed)
	down = m.scatterTokens(down)
	m.in("residual")
	y := m.add(residual, down)
	m.drop(down, residual)
	return y
}

func (m *machine) llamaAttention(s *shape, net *decoder, l *layer, normed *tensor) *tensor {
	q := m.heads(s, l.q, l.normQ, normed)
	k := m.heads(s, l.k, l.normK, normed)
	v := m.project(l.v, normed)
	m.in("rotary")
	turnedQ := m.rotate(net, q)
	turnedK := m.rotate(net, k)
	m.drop(q, k)
	attended := m.attention(turnedQ, turnedK, v, s)
	out := m.project(l.out, attended)
	m.drop(attended, turnedQ, turnedK, v)
	return out
}

// heads are queries or keys by heads, each normalized where there is a norm.
func (m *machine) heads(s *shape, l *linear, each *norm, normed *tensor) *tensor {
	flat := m.project(l, normed)
	if each != nil {
		whole := flat
		flat = m.rmsNorm(each, whole, s.HeadSize())
		m.drop(whole)
	}
	out := m.gathered(flat)
	m.drop(flat)
	return out
}
