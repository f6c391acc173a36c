package layouts

// saved holds the activations that the forward pass of a layer saves for its backward pass: MEMO's skeletal activations, 16 vectors of the
// hidden size per token if the feed-forward size is four times that, and some small ones.
type saved struct {
	input         buffer
	stats1, norm1 buffer
	q, k, v       buffer
	attended, lse buffer
	residual      buffer
	stats2, norm2 buffer
	up, activated buffer
}

// skeletal requests the saved activations, unless they are offloaded.
func (m Transformer) skeletal(t *tape, size int64) buffer {
	if m.Offload {
		return none
	}
	return t.alloc(size)
}

// forward takes the input of a layer and returns its output, the input of the next. With offloading the input is freed
// once it has been read.
func (m Transformer) forward(t *tape, x buffer, s *saved) buffer {
	s.stats1, s.norm1 = m.skeletal(t, 2*single*m.Tokens), m.skeletal(t, m.hidden())
	m.attention(t, s)
	projected := m.reduce(t)
	s.residual = m.skeletal(t, m.hidden())
	t.free(projected)
	s.stats2, s.norm2 = m.skeletal(t, 2*single*m.Tokens), m.skeletal(t, m.hidden())
	raw := t.alloc(m.inner())
	s.up = m.skeletal(t, m.inner())
	t.free(raw)
	s.activated = m.skeletal(t, m.inner())
	down := m.reduce(t)
	out := t.alloc(m.hidden())
	t.free(down)
	if s.input = x; m.Offload {
		t.free(x)
		s.input = none
	}
	return out
}

// attention projects queries, keys and values at once, and stores them separately. Sums over blocks of keys are in
// single precision.
func (m Transformer) attention(t *tape, s *saved) {
	qkv := t.alloc(3 * m.heads())
	s.q, s.k, s.v = m.skeletal(t, m.heads()), m.skeletal(t, m.heads()), m.skeletal(t, m.heads())
	t.free(qkv)
	s.attended, s.lse = m.skeletal(t, m.heads()), m.skeletal(t, m.shard(single*m.Heads*m.Tokens))
	sums, weights, seeds := t.alloc(single/half*m.heads()), t.alloc(m.shard(single*m.Heads*m.Tokens)), t.alloc(2*index)
	t.free(sums, weights, seeds)
}

// reduce multiplies a shard, sums the products of all GPUs, and returns the sum.
func (m Transformer) reduce(t *tape) buffer {
	product := t.alloc(m.hidden())
	sum := t.alloc(m.hidden())
	t.free(product)
	return sum
}

// backward takes the gradient of a layer's output and returns the gradient of its input.
func (m Transformer) backward(t *tape, g buffer, s *saved, grads *gradients) buffer {
	gr := m.backwardFeedForward(t, g, s, grads)
	gx := m.backwardAttention(t, gr, s, grads)
	t.free(s.norm1)
	grads.add(t, 2*half*m.Hidden)
	sum := t.alloc(m.hidden())
	t.free(gx, gr, s.stats1, s.input)
	return sum
}

// backwardFeedForward returns the gradient of the residual.
func (m Transformer) backwardFeedForward(t *tape, g buffer, s *saved, grads *gradients) buffer {
	gActivated := t.alloc(m.inner())
	grads.add(t, m.shard(half*m.Hidden*m.FFN))
	t.free(s.activated)
	gUp := t.alloc(m.inner())
	t.free(gActivated, s.up)
	gNorm := m.reduce(t)
	grads.add(t, m.shard(half*m.Hidden*m.FFN))
	t.free(gUp, s.norm2)
	gIn := t.alloc(m.hidden())
	grads.add(t, 2*half*m.Hidden)
	t.free(gNorm, s.stats2)
	sum := t.alloc(m.hidden())
	t.free(gIn, g, s.residual)
	return sum
}

// backwardAttention returns the gradient of the input of the attention.
func (m Transformer) backwardAttention(t *tape, g buffer, s *saved, grads *gradients) buffer {
	gAttended := t.alloc(m.heads())
	grads.add(t, m.shard(half*m.Hidden*m.Hidden))
	delta := t.alloc(m.shard(single * m.Heads * m.Tokens))
	gWide := t.alloc(single / half * m.heads()) // of the queries, summed in single precision
	gQKV := t.alloc(3 * m.heads())
	t.free(gWide, delta, gAttended, s.attended, s.lse, s.q, s.k, s.v)
	gNorm := m.reduce(t)
	grads.add(t, m.shard(3*half*m.Hidden*m.Hidden))
	t.free(gQKV)
	gIn := t.alloc(m.hidden())
	t.free(gNorm)
	return gIn
}
