package synth

// micro is a microbatch: a part of a step's sequences that runs forward and backward by itself.
type micro struct {
	tape     []*node
	received *tensor // what the stage before sends; stays, as PyTorch's pipelining keeps a buffer for each microbatch
	returned *tensor // the gradient that the stage behind sends; likewise
	entry    *node   // where the gradient of what was received arrives
	out      *tensor // what is sent, until its backward pass
	one      *tensor // what the backward pass of the loss starts from
	last     bool
}

// prepare makes what lives beside the parameters all the time: the buffers of a pipeline, and those in which gradients are summed up by
// DistributedDataParallel, which are as large as all gradients.
func (t *trainer) prepare() {
	t.at = place{phase: phaseLoad, operator: "pipeline"}
	size := half * t.job.Batch * t.job.Lengths.longest() / t.job.Context / t.job.Tensor * t.shape.Hidden
	for i := range t.job.Micro {
		m := &micro{last: i == t.job.Micro-1}
		if !t.job.first() {
			m.received = t.alloc(size, activation)
		}
		if !t.job.last() {
			m.returned = t.alloc(size, activation)
		}
		t.micros = append(t.micros, m)
	}
	if !t.job.replicated() {
		return
	}
	t.at.operator = "buckets"
	left := int64(0)
	for _, p := range t.params {
		if !p.trainable {
			continue
		}
		if left += p.rows * p.columns * p.stored; left >= bucketBytes {
			t.alloc(left, gradient)
			left = 0
		}
	}
	if left > 0 {
		t.alloc(left, gradient)
	}
}

// bucketBytes is the size from which on DistributedDataParallel fills another buffer.
const bucketBytes = 25 << 20

// halve makes the copies that operators read, where parameters are in single precision and FSDP makes none.
func (t *trainer) halve() {
	if !t.job.Strategy.Mixed || t.job.sharded() {
		return
	}
	for _, p := range t.params {
		if p.stored != p.element {
			t.in(p.name)
			t.copies = append(t.copies, t.alloc(p.bytes(), parameter))
		}
	}
}

// pass runs a pass of a microbatch.
func (t *trainer) pass(p pass) {
	t.micro = t.micros[p.micro]
	t.tape = t.micro.tape
	if p.backward {
		t.runBackward(t.micro)
	} else {
		t.runForward(t.micro)
	}
	t.micro.tape = t.tape
}

func (t *trainer) runForward(m *micro) {
	for _, p := range t.params {
		p.leaf = nil
	}
	t.at = place{phase: phaseForward}
	x := t.forward()
	if t.job.last() {
		m.one = t.lossOf(x)
		return
	}
	m.out = x
	t.drop(t.copied)
	t.copied = nil
}

func (t *trainer) runBackward(m *micro) {
	if m.out != nil {
		t.at = place{phase: phaseBackward}
		t.gatherFirst()
		m.out.from.grads[m.out.slot] = m.returned.share()
	}
	t.backward()
	t.finish()
	t.drop(m.one, m.out)
	m.one, m.out = nil, nil
	if m.entry != nil {
		t.drop(m.entry.grads...)
		m.entry = nil
	}
}
