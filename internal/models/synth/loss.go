package synth

// lossOf runs the classifier and the loss, in single precision, consumes the hidden states, and returns the gradient from which the backward
// pass starts.
func (t *trainer) lossOf(x *tensor) *tensor {
	s := &t.shape
	t.at = place{phase: t.at.phase, module: "head"}
	t.in("lm_head")
	all := t.gatherTokens(x)
	t.drop(x)
	x = all
	logits := t.multiply(t.net.head, nil, x)
	t.in("loss")
	wide := t.cast(logits, logits.size/half*single)
	index := indexBytes * s.tokens
	padded := t.alloc(index+indexBytes*s.batch, temporary)
	targets := padded.share()
	if s.batch > 1 {
		t.drop(targets)
		targets = t.alloc(index, activation)
	}
	soft := t.softmax(wide)
	nll := t.node(1, soft)
	t.keep(nll, targets)
	loss := nll.makes(t.alloc(single, activation))
	weight := t.alloc(single, activation)
	t.keep(nll, weight)
	t.returns(nll, soft.size, soft.size)
	if t.job.Stages > 1 {
		t.outputs = append(t.outputs, logits.share())
	}
	t.drop(wide, padded, x, t.copied, logits, targets, soft, weight)
	t.copied = nil
	t.replace(loss)
	t.at = place{phase: phaseBackward}
	one := t.alloc(single, temporary)
	t.gatherFirst()
	nll.grads[0] = one.share()
	return one
}

// softmax is the logarithm of it.
func (m *machine) softmax(x *tensor) *tensor {
	n := m.node(1, x)
	if m.tensors > 1 {
		return m.softmaxInParts(n, x)
	}
	return m.softmaxWhole(n, x)
}

// softmaxWhole is softmax of what this GPU has.
func (m *machine) softmaxWhole(n *node, x *tensor) *tensor {
	y := n.makes(m.alloc(x.size, activation))
	m.moves(2 * x.size)
	m.keep(n, y)
	m.returns(n, y.size, 4*y.size)
	return y
}

// softmaxInParts is softmax where each GPU has the logits of its words, as DTensor's loss_parallel has it.
func (m *machine) softmaxInParts(n *node, x *tensor) *tensor {
	shifted := m.alloc(x.size, temporary)
	m.briefly(x.size) // exponentials, which are summed up
	y := n.makes(m.alloc(x.size, activation))
	m.drop(shifted)
	m.moves(8 * x.size)
	m.keep(n, y)
	if n == nil {
		return y
	}
	size := y.size
	n.back = func([]*tensor) []*tensor {
		probabilities := m.alloc(size, temporary)
		scaled := m.alloc(size, temporary)
		m.drop(probabilities)
		gradient := m.alloc(size, temporary)
		m.drop(scaled)
		m.moves(9 * size)
		return []*tensor{gradient}
	}
	return y
}

// replace replaces the last step's loss with this step's, and frees what only the last step's graph kept.
func (t *trainer) replace(loss *tensor) {
	for len(t.leaves) > 1 {
		t.drop(t.leaves[0].grads...)
		t.drop(t.words[0])
		t.leaves, t.words = t.leaves[1:], t.words[1:]
	}
	t.drop(t.loss)
	t.loss = loss
}

// update runs AdamW over lists of tensors: two states for each parameter, made in the first step, and a temporary each; and gives gradients
// back. With offload the host does it, and what it has updated is copied back in place.
func (t *trainer) update() {
	t.at = place{phase: phaseUpdate, operator: "adamw"}
	var bytes int64
	var trained []*param
	for _, p := range t.params {
		if p.trainable {
			trained = append(trained, p)
			bytes += t.state(p)
		}
	}
	if t.job.Strategy.Offload {
		t.gpu = max(t.gpu, t.host)
		t.wait()
		t.settle(t.now)
		t.passes(float64(bytes) / hostLink)
	} else {
		t.adamW(trained, bytes)
	}
	t.at.operator = "zero_grad"
	for _, p := range t.params {
		t.drop(p.grad)
		p.grad = nil
	}
	for _, u := range t.units {
		t.drop(u.gradients)
		u.gradients = nil
	}
}

// state returns the bytes of a state of the optimizer: of ranks that share states alone each has its part of them.
func (t *trainer) state(p *param) int64 {
	if t.job.replicated() && t.job.Zero == 1 {
		return divide(p.rows*p.columns, t.job.Ranks*t.job.Context) * p.stored
	}
	return p.shard()
}

func (t *trainer) adamW(trained []*param, bytes int64) {
	if !t.started {
		t.started = true
		for _, p := range trained {
			t.alloc(t.state(p), optimizer)
			t.alloc(t.state(p), optimizer)
		}
	}
	var roots []*tensor
	for _, p := range trained {
		roots = append(roots, t.alloc(t.state(p), temporary))
	}
	t.moves(10 * bytes)
	t.dropLast(roots)
}
