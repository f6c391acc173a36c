package synth

// unit is the parameters that FSDP2 (fully_shard) gathers together: a layer's, or those outside of layers.
type unit struct {
	params    []*param
	name      string
	flat      *tensor // what ranks sent, until it has been copied out
	full      []*tensor
	reduced   *tensor // gradients of all ranks' shards, until the next unit's are
	gradients *tensor // of this rank's shards
}

// The host's side, in bytes a second: a link to it (PCIe 5), and the network between hosts.
const (
	hostLink = 55e9
	wire     = 50e9
)

// RanksOfHost is how many ranks a host has.
const RanksOfHost = 8

// tableSpace and tableEntry are what the kernels that copy in and out take to know their tensors.
const (
	tableSpace  = 32768
	tableEntry  = 20
	reduceEntry = 372
)

// shard groups parameters into units, if there are ranks to share them.
func (t *trainer) shard() {
	if !t.job.sharded() {
		return
	}
	inLayer := map[*param]bool{}
	for _, l := range t.net.layers {
		t.units = append(t.units, &unit{params: l.params, name: l.name})
		for _, p := range l.params {
			inLayer[p] = true
		}
	}
	t.root = &unit{name: "root"}
	for _, p := range t.params {
		if !inLayer[p] {
			t.root.params = append(t.root.params, p)
		}
	}
	t.units = append(t.units, t.root)
}

// unitOf returns the unit of a layer, nil without FSDP.
func (t *trainer) unitOf(layer int) *unit {
	if !t.job.sharded() {
		return nil
	}
	return t.units[layer]
}

// send starts to gather a unit's parameters, on the stream that gathers: those that several ranks share. Others, as those of experts that one rank has,
// are copied alone (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
func (t *trainer) send(u *unit) {
	if u == nil || u.flat != nil || u.full != nil || len(u.params) == 0 {
		return
	}
	at := t.at
	t.at = place{at.phase, u.name, "all_gather"}
	size, received, share := int64(0), int64(0), int64(0)
	for _, p := range u.params {
		whole := p.padded(p.element)
		share += whole / p.over
		if p.over > 1 {
			size += whole
			received += whole - whole/p.over
		}
	}
	var sent *tensor
	if !t.resident() {
		sent = t.allocOn(streamGather, share, temporary)
		t.passes(float64(share) / hostLink)
	}
	u.flat = t.allocOn(streamGather, size, temporary)
	t.passes(float64(received) / t.job.peer())
	t.drop(sent)
	t.at = at
}

// gather has a unit's parameters gathered and copied out. In the forward pass what was received stays until the next unit's has been
// copied out.
func (t *trainer) gather(u *unit) {
	if u == nil || u.full != nil || len(u.params) == 0 {
		return
	}
	t.send(u)
	at := t.at
	t.at = place{at.phase, u.name, "all_gather"}
	for _, p := range u.params {
		u.full = append(u.full, t.alloc(p.padded(p.element), parameter))
	}
	t.briefly(tableSpace + tableEntry*int64(len(u.params)))
	t.moves(2 * u.flat.size)
	t.drop(t.copied)
	t.copied, u.flat = u.flat, nil
	if at.phase != phaseForward {
		t.drop(t.copied)
		t.copied = nil
	}
	t.at = at
}

// release frees gathered parameters.
func (t *trainer) release(u *unit) {
	t.drop(u.full...)
	u.full = nil
}

// gatherFirst gathers what the backward pass begins with.
func (t *trainer) gatherFirst() {
	if n := len(t.net.layers); t.job.sharded() && n > 0 {
		t.send(t.units[n-1])
	}
}

// gatherAgain gathers the parameters of a layer for its backward pass, and sends for those of the layer before.
func (t *trainer) gatherAgain(layer int) {
	t.gather(t.units[layer])
	if layer > 0 {
		t.send(t.units[layer-1])
	}
}

// scatterGradients frees a unit's parameters after its backward pass, sums its gradients up over the ranks, and keeps this rank's.
func (t *trainer) scatterGradients(u *unit) {
	if t.keepsWhole() {
		t.widen(u)
		return
	}
	t.release(u)
	at := t.at
	t.at = place{at.phase, u.name, "reduce_scatter"}
	size, share := int64(0), int64(0)
	for _, p := range u.params {
		if p.grad != nil {
			size += p.padded(p.stored)
			share += p.shard()
		}
	}
	for _, other := range t.units {
		t.drop(other.reduced)
		other.reduced = nil
	}
	if size > 0 {
		t.reduce(u, size, share)
	}
	t.at = at
}

func (t *trainer) reduce(u *unit, size, share int64) {
	u.reduced = t.alloc(size, temporary)
	var whole []*tensor
	for _, p := range u.params {
		if p.grad != nil {
			whole = append(whole, p.grad)
			p.grad = nil
		}
	}
	t.briefly(reduceEntry * int64(len(whole)))
	t.moves(2 * size)
	last := len(whole) - 1 // to which a loop's variable refers
	t.drop(whole[:last]...)
	before := u.gradients
	u.gradients = t.allocOn(streamReduce, share, gradient)
	t.drop(whole[last], before)
	t.passes(float64(size-share) / t.job.peer())
	if t.job.Strategy.Offload {
		t.toHost(u.gradients)
		u.gradients = nil
	}
}

// finish ends the backward pass: of what is outside of layers, too.
func (t *trainer) finish() {
	if t.root == nil {
		return
	}
	t.at = place{phase: phaseBackward}
	if t.keepsWhole() {
		t.widen(t.root)
		return
	}
	for _, u := range t.units {
		if u.full != nil {
			t.scatterGradients(u)
		}
	}
	t.drop(t.root.reduced)
	t.root.reduced = nil
}

// gradientReady is called when the gradient of a parameter is complete: with offload it leaves for the host.
func (t *trainer) gradientReady(p *param) {
	switch {
	case t.job.sharded():
	case t.job.Strategy.Offload:
		t.toHost(p.grad)
		p.grad = nil
	default:
		t.widenOne(p)
	}
}

// keepsWhole reports whether parameters and gradients stay whole after a backward pass of FSDP: in a pipeline until the last one of a step, as
// PyTorch's pipelining has it.
func (t *trainer) keepsWhole() bool { return t.job.Stages > 1 && !t.micro.last }

// widen converts the gradients of a unit to the numbers that they are summed up in.
func (t *trainer) widen(u *unit) {
	for _, p := range u.params {
		if p.grad != nil {
			t.widenOne(p)
		}
	}
}

func (t *trainer) widenOne(p *param) {
	size := p.rows * p.columns * p.stored
	if p.grad.size >= size {
		return
	}
	wide := t.alloc(size, gradient)
	t.moves(p.grad.size + size)
	t.drop(p.grad)
	p.grad = wide
}

// toHost frees a tensor once it has been copied to the host, behind the copies before.
func (t *trainer) toHost(x *tensor) {
	t.host = max(t.host, t.gpu) + float64(x.size)/hostLink*1e9
	t.freeAt(x.block, t.host)
}
