package synth

// param is a parameter: a matrix or a vector.
type param struct {
	name      string
	rows      int64 // which FSDP shards
	columns   int64
	element   int64 // bytes, as operators read it
	stored    int64 // bytes, as the optimizer reads it
	over      int64 // ranks that FSDP shards it over
	stack     int64 // matrices on top of each other, of one expert each
	trainable bool
	leaf      *node
	grad      *tensor
}

func (p *param) bytes() int64 { return p.rows * p.columns * p.element }

// shard returns the bytes of one rank's part. All parts have the same number of rows, the last ones with padding.
func (p *param) shard() int64 { return divide(p.rows, p.over) * p.columns * p.stored }

// padded returns the bytes of all shards in numbers of this many bytes.
func (p *param) padded(element int64) int64 {
	return p.over * divide(p.rows, p.over) * p.columns * element
}

// use returns the parameter as the input of an operator.
func (p *param) use(m *machine) *tensor {
	t := &tensor{size: p.bytes()}
	if !p.trainable || m.halted {
		return t
	}
	if p.leaf == nil {
		p.leaf = &node{grads: make([]*tensor, 1), param: p}
	}
	if !m.again {
		p.leaf.uses++
	}
	t.from = p.leaf
	return t
}

// arrived takes the gradient from a leaf once all uses have sent theirs, and adds it to that of the microbatches before.
func (p *param) arrived(m *machine, leaf *node) {
	if leaf.uses--; leaf.uses > 0 {
		return
	}
	g := leaf.grads[0]
	leaf.grads[0] = nil
	if p.grad == nil {
		p.grad = g
	} else {
		m.moves(3 * g.size)
		m.drop(g)
	}
	m.ready(p)
}

// linear is a layer that multiplies by a matrix, and what LoRA adds to it.
type linear struct {
	name         string
	weight, bias *param // no bias: nil
	down, up     *param // adapters; nil without
}

// norm is the parameters of a normalization.
type norm struct {
	name         string
	weight, bias *param
}

// Bytes of a number: of bfloat16, and of what is in single precision, as PEFT keeps adapters.
const (
	half   = 2
	single = 4
)

// builder makes the parameters of a model in the order in which they are loaded.
type builder struct {
	all   []*param
	lora  bool
	rank  int64
	where string
	job   *Job
}

func (b *builder) param(name string, rows, columns int64) *param {
	p := &param{
		name: b.where + name, rows: rows, columns: columns, element: half, stored: b.job.stored(), over: b.job.shards(), stack: 1, trainable: !b.lora,
	}
	b.all = append(b.all, p)
	return p
}

// experts is a matrix of each expert of this rank, which fewer ranks share. autocast, which has the operators of one GPU run in half precision, does not
// know the grouped product of experts: it stays in single precision.
func (b *builder) experts(name string, count, in, out int64) *linear {
	p := b.param(name+".weight", count*out, in)
	p.stack = count
	switch {
	case b.job.sharded():
		p.over = b.job.shards() / b.job.Experts
	case b.job.Strategy.Mixed:
		p.element = single
	}
	return &linear{name: name, weight: p}
}

func (b *builder) linear(name string, in, out int64, bias bool) *linear {
	l := &linear{name: name, weight: b.param(name+".weight", out, in)}
	if bias {
		l.bias = b.param(name+".bias", out, 1)
	}
	return l
}

// adapted is a linear layer with adapters, under LoRA.
func (b *builder) adapted(name string, in, out int64, bias bool) *linear {
	l := b.linear(name, in, out, bias)
	if b.lora {
		l.down, l.up = b.adapter(name+".lora_A", b.rank, in), b.adapter(name+".lora_B", out, b.rank)
	}
	return l
}

func (b *builder) adapter(name string, rows, columns int64) *param {
	p := &param{name: b.where + name, rows: rows, columns: columns, element: single, stored: single, over: b.job.shards(), stack: 1, trainable: true}
	b.all = append(b.all, p)
	return p
}

func (b *builder) norm(name string, width int64, bias bool) *norm {
	n := &norm{name: name, weight: b.param(name+".weight", width, 1)}
	if bias {
		n.bias = b.param(name+".bias", width, 1)
	}
	return n
}
