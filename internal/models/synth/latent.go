package synth

// latent is the parameters of multi-head latent attention.
type latent struct {
	queriesDown, queriesUp, keysDown, keysUp, out *linear
	queriesNorm, keysNorm                         *norm
}

func (b *builder) latent(s *shape) *latent {
	c := s.Latent
	return &latent{
		queriesDown: b.linear("self_attn.q_a_proj", s.Hidden, c.Queries, false),
		queriesNorm: b.norm("self_attn.q_a_layernorm", c.Queries, false),
		queriesUp:   b.adapted("self_attn.q_b_proj", c.Queries, s.Heads*(c.Plain+c.Turned), false),
		keysDown:    b.linear("self_attn.kv_a_proj_with_mqa", s.Hidden, c.Keys+c.Turned, false),
		keysNorm:    b.norm("self_attn.kv_a_layernorm", c.Keys, false),
		keysUp:      b.adapted("self_attn.kv_b_proj", c.Keys, s.Heads*(c.Plain+c.Values), false),
		out:         b.linear("self_attn.o_proj", s.Heads*c.Values, s.Hidden, false),
	}
}

// run compresses, expands, turns a part of each head, and attends.
func (l *latent) run(m *machine, s *shape, net *decoder, x *tensor) *tensor {
	q := l.queries(m, s, net, x)
	k, v := l.keys(m, s, net, x)
	attended := m.attention(q, k, v, s)
	out := m.project(l.out, attended)
	m.drop(attended, q, k, v)
	return out
}

func (l *latent) queries(m *machine, s *shape, net *decoder, x *tensor) *tensor {
	c := s.Latent
	small := m.project(l.queriesDown, x)
	normed := m.rmsNorm(l.queriesNorm, small, c.Queries)
	m.drop(small)
	wide := m.project(l.queriesUp, normed)
	m.drop(normed)
	parts := m.split(wide, s.tensorOf(s.Heads*c.Plain), s.tensorOf(s.Heads*c.Turned))
	m.drop(wide)
	m.in("rotary")
	turned := m.rotate(net, parts[1])
	q := m.concat(parts[0], turned)
	m.drop(turned)
	m.drop(parts...)
	return q
}

// keys returns keys, whose turned part all heads share, and values.
func (l *latent) keys(m *machine, s *shape, net *decoder, x *tensor) (k, v *tensor) {
	c := s.Latent
	small := m.project(l.keysDown, x)
	parts := m.split(small, s.tensorOf(c.Keys), s.tensorOf(c.Turned))
	m.drop(small)
	normed := m.rmsNorm(l.keysNorm, parts[0], c.Keys)
	wide := m.project(l.keysUp, normed)
	m.drop(normed)
	of := m.split(wide, s.tensorOf(s.Heads*c.Plain), s.tensorOf(s.Heads*c.Values))
	m.drop(wide)
	m.in("rotary")
	turned := m.rotate(net, parts[1])
	each := m.pointwise(turned, s.tensorOf(s.Heads*c.Turned), false, false)
	m.drop(turned)
	k = m.concat(of[0], each)
	m.drop(each, of[0])
	m.drop(parts...)
	return k, of[1]
}
