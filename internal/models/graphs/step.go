package graphs

import (
	"slices"
	"time"

	"gm/internal/cuda/cards"
	"gm/internal/swap"
)

// step is how a network of layers is trained.
type step struct {
	device         cards.Device
	batch, element int64 // images, bytes of a number
	workspace      int64 // bytes that a convolution has for its algorithm, which is a slow one if there are none
}

// states is what is kept of each parameter: its value, its gradient and its momentum.
const states = 3

// maker makes the graph of a step.
type maker struct {
	*layers
	step
	builder
	at     []int32 // where each layer runs in the forward pass
	count  int32   // of layers
	output []int32 // tensors
	model  Model
}

// train returns the model of a step of a network. Its first layer reads the image, as no other does.
func (n *layers) train(s step) (*Model, error) {
	if n.small != nil {
		return nil, n.small
	}
	m := maker{layers: n, step: s, at: make([]int32, len(n.all)), count: int32(len(n.all)), output: make([]int32, len(n.all))}
	order := n.order()
	for i, l := range order {
		m.at[l] = int32(i)
	}
	for _, l := range n.all {
		m.model.Parameters += l.params
		m.model.FLOPs += l.flops
	}
	m.always = states * s.element * m.model.Parameters
	m.model.Always = m.always
	m.run(order)
	m.hold(order)
	m.model.FLOPs *= 3 * float64(s.batch)
	m.model.FLOPs -= float64(s.batch) * n.all[0].flops // nothing asks for the gradient of an image
	m.model.Graph, m.model.Device, m.model.GPUs = &m.graph, s.device, 1
	return &m.model, nil
}

// back returns the operator of a layer's backward pass.
func (m *maker) back(l int) int32 { return 2*m.count - 1 - m.at[l] }

// bytes returns those of a batch of activations.
func (m *maker) bytes(s shape) int64 { return m.batch * m.element * s.elements() }

// run adds all operators: forward, backward in the opposite order, and the update.
func (m *maker) run(order []int) {
	for _, l := range order {
		m.op(m.all[l].name, m.all[l].kind, m.at[l], m.forwardTime(l), 0)
		m.work(l, "forward")
	}
	m.phase = swap.Backward
	for _, l := range slices.Backward(order) {
		m.op(m.all[l].name+".backward", m.all[l].kind, m.at[l], m.backwardTime(l), 0)
		if m.all[l].in[0] == image {
			m.work(l, "backward_filter")
		} else {
			m.work(l, "backward_data", "backward_filter")
		}
	}
	m.phase = swap.Update
	const passes = 5 // reads the three states, writes two
	m.op("update", swap.Other, -1, m.device.Stream(passes*float64(m.element*m.model.Parameters)), 0)
}

// work notes that the last operator computes passes of a layer, if it is a convolution, and adds its workspace.
func (m *maker) work(l int, passes ...string) {
	if m.all[l].kind != swap.Conv {
		return
	}
	at := int32(len(m.graph.Ops) - 1)
	c := Convolving{m.all[l].convolution, at, passes}
	c.Batch = m.batch
	m.model.Convolutions = append(m.model.Convolutions, c)
	if m.workspace > 0 {
		m.occupy(Lifetime{m.workspace, at, at})
	}
}

// occupy adds memory beside the tensors.
func (m *maker) occupy(l Lifetime) {
	m.model.Temporaries = append(m.model.Temporaries, l)
	for op := l.Made; op <= l.Last; op++ {
		m.graph.Ops[op].Base += l.Bytes
	}
}

func (m *maker) forwardTime(l int) time.Duration {
	n := &m.all[l]
	return m.time(n, n.flops, n.forward, 1)
}

// backwardTime is the time of the gradients of the input and of the weights; each takes as long as the forward pass.
func (m *maker) backwardTime(l int) time.Duration {
	n := &m.all[l]
	if n.in[0] == image {
		return m.time(n, n.flops, n.forward, 1)
	}
	return m.time(n, 2*n.flops, n.backward, 2)
}

// time is the longer of arithmetic and traffic. Weights are moved once a pass for the whole batch.
func (m *maker) time(n *layer, flops float64, moves, passes int64) time.Duration {
	reach := m.device.Reach.Matmul
	if n.kind == swap.Conv {
		reach = m.device.Reach.Conv
	}
	if n.fast {
		reach = m.device.Reach.Conv3x3
	}
	if n.kind == swap.Conv && m.workspace == 0 {
		reach *= m.device.Reach.Bare
	}
	compute := cards.Seconds(flops * float64(m.batch) / (m.device.Rate(m.element) * reach))
	return max(compute, m.device.Stream(float64(m.element*(m.batch*moves+passes*n.params))))
}

// hold adds the tensors: the images, and the output and the mask of each layer. Gradients go to Base.
func (m *maker) hold(order []int) {
	uses := []int32{0, m.back(0)}
	images := swap.Tensor{Name: "images", Bytes: m.bytes(m.input), Uses: uses}
	m.graph.Tensors = append(m.graph.Tensors, images)
	for _, l := range order {
		n := &m.all[l]
		m.output[l] = int32(len(m.graph.Tensors))
		from := make([]int32, len(n.in))
		for i, in := range n.in {
			if in != image {
				from[i] = m.output[in]
			}
		}
		m.graph.Tensors = append(m.graph.Tensors, swap.Tensor{
			Name: n.name, Bytes: m.bytes(n.out), Made: m.at[l], Uses: m.usesOf(l), Layer: m.at[l], Recompute: m.forwardTime(l), From: from,
		})
		if n.mask {
			m.graph.Tensors = append(m.graph.Tensors, swap.Tensor{
				Name: n.name + ".mask", Bytes: m.batch * n.out.elements(), Made: m.at[l], Uses: []int32{m.back(l)}, Layer: m.at[l],
			})
		}
		m.holdGradient(l)
	}
}

// usesOf lists the operators that read the output of a layer.
func (m *maker) usesOf(l int) []int32 {
	var uses []int32
	for _, next := range m.all[l].next {
		uses = append(uses, m.at[next])
		if m.all[next].readsIn {
			uses = append(uses, m.back(next))
		}
	}
	if m.all[l].readsOut {
		uses = append(uses, m.back(l))
	}
	slices.Sort(uses)
	return uses
}

// holdGradient adds that of a layer's output: from the first layer that adds to it to the layer itself.
func (m *maker) holdGradient(l int) {
	first := m.back(l)
	for _, next := range m.all[l].next {
		first = min(first, m.back(next))
	}
	if first == m.back(l) {
		return // the loss: its gradient is made of its own output
	}
	m.occupy(Lifetime{m.bytes(m.all[l].out), first, m.back(l)})
}
