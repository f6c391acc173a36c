package synth

// feed is the parameters of a feed-forward part.
type feed struct{ gate, up, down *linear }

func (b *builder) feed(name string, in, width int64) feed {
	up := b.linear(name+".gate_proj", in, width, false)
	return feed{up, b.linear(name+".up_proj", in, width, false), b.linear(name+".down_proj", width, in, false)}
}

// run is SwiGLU.
func (f feed) run(m *machine, x *tensor) *tensor {
	gate := m.project(f.gate, x)
	active := m.silu(gate)
	m.drop(gate)
	up := m.project(f.up, x)
	product := m.times(active, up)
	m.drop(active, up)
	down := m.project(f.down, product)
	m.drop(product)
	return down
}

// routed is a feed-forward part of experts.
type routed struct {
	router *linear
	feed   // of this GPU's experts
	shared []feed
}

func (b *builder) routed(s *shape, ranks int64) *routed {
	e := &s.Experts
	count := e.Count / ranks
	r := &routed{router: b.linear("mlp.gate", s.Hidden, e.Count, false)}
	r.gate = b.experts("mlp.experts.gate_proj", count, s.Hidden, e.FFN)
	r.up = b.experts("mlp.experts.up_proj", count, s.Hidden, e.FFN)
	r.down = b.experts("mlp.experts.down_proj", count, e.FFN, s.Hidden)
	if e.Shared > 0 {
		r.shared = []feed{b.feed("mlp.shared_experts", s.Hidden, e.Shared*e.FFN)}
	}
	return r
}

// run sends tokens to experts, as many to each as to any other, multiplies with the matrices of all experts of this GPU in one kernel, and
// sums up what comes back. Scores are in single precision, and each GPU of those that split layers has all.
func (r *routed) run(m *machine, s *shape, x *tensor) *tensor {
	tokens := x.size / (half * s.Hidden)
	pairs := tokens * s.Experts.Active
	logits := m.project(r.router, x)
	m.in("mlp.router")
	wide := m.cast(logits, logits.size/half*single)
	scores := m.softmaxWhole(m.node(1, wide), wide)
	weights := m.pointwise(scores, single*pairs, false, false)
	order := m.alloc(indexBytes*pairs, activation)
	m.drop(logits, wide, scores)

	m.in("mlp.dispatch")
	sent := m.pointwise(x, r.gate.weight.element*s.Hidden*pairs, false, false)
	sent = m.exchange(s, sent)
	done := r.feed.run(m, sent)
	m.drop(sent)
	m.in("mlp.combine")
	done = m.exchange(s, done)
	scaled := m.times(done, weights)
	m.drop(done, weights, order)
	ordered := m.pointwise(scaled, scaled.size, false, false) // by tokens
	m.drop(scaled)
	y := m.pointwise(ordered, x.size, false, false)
	m.drop(ordered)
	for _, f := range r.shared {
		all := f.run(m, x)
		sum := m.add(y, all)
		m.drop(y, all)
		y = sum
	}
	return y
}

// exchange sends rows to the GPUs of their experts, or back, and consumes them. Beside the copy that is received there is one in the
// order of experts, before it is sent back or after it was received.
func (m *machine) exchange(s *shape, x *tensor) *tensor {
	if s.exchanged == 1 {
		return x
	}
	for range 2 {
		y := m.pointwise(x, x.size, false, false)
		m.drop(x)
		x = y
	}
	return x
}
