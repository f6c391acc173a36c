package graphs

import (
	"time"

	"gm/internal/cuda/cards"
	"gm/internal/swap"
)

// Model is a network in training, on one GPU or on several that split each layer.
type Model struct {
	Graph       *swap.Graph // what one of the GPUs does in a step
	Device      cards.Device
	GPUs        int64
	Parameters  int64      // of the whole network
	Always      int64      // bytes on each GPU that are in use all the time: the state of the parameters
	FLOPs       float64    // of a step on all GPUs, forward and backward, with nothing computed twice
	Temporaries []Lifetime // gradients of activations and workspaces, Op.Base but for Always; of layer-granular networks only

	Convolutions []Convolving // of layer-granular networks, in the order of the operators
}

// Lifetime is memory that is in use from the operator Made to the operator Last.
type Lifetime struct {
	Bytes      int64
	Made, Last int32
}

// MFU returns the part of the GPUs' arithmetic in half precision that a step makes use of (MEMO, section 5.1).
func (m *Model) MFU(step time.Duration) float64 {
	return m.FLOPs / (float64(m.GPUs) * m.Device.Half * step.Seconds())
}

// builder puts a graph together, operator by operator.
type builder struct {
	graph  swap.Graph
	phase  swap.Phase
	always int64 // bytes that are in use all the time
}

// op adds an operator that reads tensors and holds some bytes while it runs.
func (b *builder) op(name string, kind swap.OpType, layer int32, took time.Duration, holds int64, reads ...int32) {
	at := int32(len(b.graph.Ops))
	b.graph.Ops = append(b.graph.Ops, swap.Op{Name: name, Type: kind, Phase: b.phase, Layer: layer, Duration: took, Base: b.always + holds})
	for _, t := range reads {
		uses := &b.graph.Tensors[t].Uses
		if n := len(*uses); n == 0 || (*uses)[n-1] != at {
			*uses = append(*uses, at)
		}
	}
}

// writes adds a tensor that the last operator writes.
func (b *builder) writes(t swap.Tensor) int32 {
	t.Made = int32(len(b.graph.Ops) - 1)
	b.graph.Tensors = append(b.graph.Tensors, t)
	return int32(len(b.graph.Tensors) - 1)
}
