package synth

// The operators with which GPUs that split a layer exchange tokens, as DTensor has them. It splits sequences, which are not the first
// dimension: what is gathered, or is to be scattered, is put in order in a copy.

// gatherTokens gathers the tokens of all GPUs that split a layer.
func (m *machine) gatherTokens(x *tensor) *tensor {
	if m.tensors == 1 {
		return x.share()
	}
	n := m.node(1, x)
	y := n.makes(m.gatherAll(x.size, activation))
	if n != nil {
		n.back = func([]*tensor) []*tensor { return []*tensor{m.reduceAll(y.size, temporary)} }
	}
	return y
}

// scatterTokens sums the parts of all GPUs that split a layer up, and consumes them. Each GPU keeps its tokens.
func (m *machine) scatterTokens(x *tensor) *tensor {
	if m.tensors == 1 {
		return x
	}
	n := m.node(1, x)
	y := n.makes(m.reduceAll(x.size, activation))
	m.drop(x)
	if n != nil {
		n.back = func([]*tensor) []*tensor { return []*tensor{m.gatherAll(y.size, temporary)} }
	}
	return y
}

func (m *machine) gatherAll(size int64, t tag) *tensor {
	received := m.alloc(size*m.tensors, temporary)
	m.receives(size * (m.tensors - 1))
	y := m.alloc(size*m.tensors, t)
	m.moves(2 * y.size)
	m.drop(received)
	return y
}

func (m *machine) reduceAll(size int64, t tag) *tensor {
	ordered := m.alloc(size, temporary)
	m.moves(2 * size)
	y := m.alloc(size/m.tensors, t)
	m.receives(size - y.size)
	m.drop(ordered)
	return y
}

// receives lets the time pass of receiving bytes from GPUs of the same host.
func (m *machine) receives(bytes int64) {
	rate := m.device.Peer * m.device.Reach.Peer
	if rate == 0 {
		rate = wire
	}
	m.passes(float64(bytes) / rate)
}
