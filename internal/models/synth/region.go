package synth

// region is a part of the forward pass that is executed again in the backward pass, as torch.utils.checkpoint does with use_reentrant=False.
type region struct {
	forward func(x *tensor) *tensor
	inputs  []*tensor // its argument first
	module  string
	total   int // tensors that backward passes in it read
	readers int // backward passes that have not run yet
	saved   []*tensor
}

// checkpoint executes a function and keeps nothing of it but its input, and what else it is passed.
func (m *machine) checkpoint(forward func(x *tensor) *tensor, x *tensor, passed []*tensor) *tensor {
	r := &region{forward: forward, module: m.at.module, inputs: []*tensor{x.share()}}
	for _, t := range passed {
		r.inputs = append(r.inputs, t.share())
	}
	m.region = r
	out := forward(x)
	m.region = nil
	if r.readers == 0 {
		m.dropLast(r.inputs)
	}
	return out
}

// restored returns what a node reads. For the first of them the region is executed again, up to the last tensor that is needed.
func (r *region) restored(m *machine, n *node) []*tensor {
	if r.saved == nil {
		at := m.at
		m.at = place{phaseAgain, r.module, ""}
		m.region, m.again = r, true
		m.drop(r.forward(r.inputs[0]))
		m.region, m.again, m.halted = nil, false, false
		m.at = at
	}
	return r.saved[n.first : n.first+n.count]
}

// restore takes tensors that the region saves when it is executed again.
func (r *region) restore(m *machine, tensors []*tensor) {
	for _, t := range tensors {
		r.saved = append(r.saved, t.share())
	}
	m.halted = len(r.saved) == r.total
}

// leave counts a backward pass that has run. After the last the inputs are not needed any more.
func (r *region) leave(m *machine) {
	if r.readers--; r.readers == 0 {
		m.dropLast(r.inputs)
	}
}
