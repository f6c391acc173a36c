package synth

import (
	"slices"

	"gm/internal/cuda/cards"
)

// machine executes a step on tensors without contents.
type machine struct {
	*recorder
	device  cards.Device
	tensors int64   // GPUs that split each layer
	gpu     float64 // when it is done with what it was asked for; recorder.now is when the program asks
	at      place
	tape    []*node // of the forward pass
	region  *region // that is executed for the first time, or again
	again   bool
	halted  bool      // the rest of the region is not needed: nothing is allocated
	warm    [2]warmth // of the threads of the two passes
	ready   func(p *param)
}

// The passes, as stacks name them.
const (
	phaseLoad     = "load"
	phaseForward  = "forward"
	phaseBackward = "backward"
	phaseAgain    = "recompute"
	phaseUpdate   = "update"
)

// warmth is which libraries have their workspaces.
type warmth struct{ blas, light bool }

// The stream that computes, and those of FSDP, as recordings number them.
const (
	streamCompute = 0
	streamGather  = 1
	streamReduce  = 2
)

// tensor is one reference to a block, or to a part of it.
type tensor struct {
	*block       // nil in the halted rest of a region
	size   int64 // bytes that operators see
	from   *node // what its gradient goes to; nil if it needs none
	slot   int   // which of the outputs of from it is
	view   bool  // of another tensor: a gradient is then not added to in place
}

// launch is the time that the recorded programs take for an operator, in nanoseconds: small steps of GPT-2 take 0.2 s, whatever their length.
const launch = 150e3

func (m *machine) alloc(bytes int64, t tag) *tensor { return m.allocOn(streamCompute, bytes, t) }

func (m *machine) allocOn(stream, bytes int64, t tag) *tensor {
	if m.halted {
		return &tensor{size: bytes}
	}
	return &tensor{block: m.recorder.alloc(bytes, stream, m.at, t), size: bytes}
}

// drop gives references up.
func (m *machine) drop(tensors ...*tensor) {
	for _, t := range tensors {
		if t == nil || t.block == nil {
			continue
		}
		if t.refs--; t.refs == 0 {
			m.free(t.block)
		}
	}
}

// dropLast gives references up, the last one first.
func (m *machine) dropLast(tensors []*tensor) {
	for _, t := range slices.Backward(tensors) {
		m.drop(t)
	}
}

// briefly allocates workspaces and frees them, the last one first.
func (m *machine) briefly(sizes ...int64) {
	var spaces []*tensor
	for _, bytes := range sizes {
		spaces = append(spaces, m.alloc(bytes, temporary))
	}
	m.dropLast(spaces)
}

// share returns one more reference.
func (t *tensor) share() *tensor {
	s := *t
	if s.block != nil {
		s.refs++
	}
	return &s
}

// part returns one more reference, to a part of a tensor.
func (t *tensor) part(bytes int64) *tensor {
	s := t.share()
	s.size, s.view = bytes, true
	return s
}

// moves lets the time pass that moving bytes takes.
func (m *machine) moves(bytes int64) {
	m.passes(float64(bytes) / (m.device.Memory * m.device.Reach.Memory))
}

// computes lets the time pass of a product of matrices.
func (m *machine) computes(flops float64) { m.passes(flops / (m.device.Half * m.device.Reach.Matmul)) }

// attends lets the time pass of attention.
func (m *machine) attends(flops, reach float64) { m.passes(flops / (m.device.Half * reach)) }

// passes lets the GPU work for a time in seconds, unless nothing is executed. The program only queues the work, and goes on.
func (m *machine) passes(seconds float64) {
	if m.halted {
		return
	}
	m.now += launch
	m.gpu = max(m.gpu, m.now) + seconds*1e9
}

// wait has the program wait for the GPU.
func (m *machine) wait() { m.now = max(m.now, m.gpu) }

// in names the operator that allocates from here on.
func (m *machine) in(operator string) { m.at.operator = operator }
