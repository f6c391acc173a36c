package graphs

import (
	"fmt"
	"time"

	"gm/internal/cuda/cards"
	"gm/internal/models/shapes"
	"gm/internal/swap"
)

// halfSize is the size of a number in half precision, in bytes.
const halfSize = 2

// transformer is a decoder and how it is trained, in half precision, with FlashAttention and a causal mask. Tensor parallelism splits heads,
// feed-forward and vocabulary, and, as sequence parallelism, the tokens of all between; context parallelism splits the sequence.
type transformer struct {
	shapes.Transformer
	device          cards.Device
	batch, sequence int64
	tensor, context int64 // GPUs
	state           int64 // bytes for each parameter
	logit           int64 // bytes for each logit at the loss
	parameters      int64
}

// check reports whether the GPUs can share it.
func (t *transformer) check() error {
	for _, p := range []struct {
		what     string
		n, split int64
	}{
		{"heads", t.Heads, t.tensor}, {"groups of heads", t.Groups, t.tensor}, {"feed-forward size", t.FFN, t.tensor},
		{"heads of groups", t.Heads, t.Groups}, {"hidden size of heads", t.Hidden, t.Heads}, {"tokens", t.batch * t.sequence, t.tensor * t.context},
	} {
		if p.n%p.split != 0 {
			return fmt.Errorf("%s: %d cannot be split %d ways", p.what, p.n, p.split)
		}
	}
	if t.tensor > 1 && t.device.Peer == 0 {
		return fmt.Errorf("tp=%d: a %s has no GPUs beside it, use tp=1", t.tensor, t.device.Name)
	}
	return nil
}

// rows returns the tokens that a GPU has, and unit the bytes of a vector of the hidden size for each of them: 2bsh, split.
func (t *transformer) rows() int64 { return t.batch * t.sequence / (t.tensor * t.context) }
func (t *transformer) unit() int64 { return halfSize * t.rows() * t.Hidden }

// gathered returns the bytes of such vectors when those of all GPUs that split a layer are brought together.
func (t *transformer) gathered() int64 { return t.tensor * t.unit() }

// keys returns the bytes of the keys, and of the values.
func (t *transformer) keys() int64 { return t.unit() / t.Heads * t.Groups }

// inner returns the bytes of a vector of the feed-forward size for each token.
func (t *transformer) inner() int64 { return halfSize * t.rows() * t.FFN }

// logits returns the bytes that the loss takes.
func (t *transformer) logits() int64 { return t.logit * t.rows() * t.Vocabulary }

// product returns the arithmetic of a product of all tokens with a matrix, on one GPU.
func (t *transformer) product(rows, columns int64) float64 {
	return shapes.ProductFLOPs(t.rows(), rows, columns)
}

// linear returns the time of that product.
func (t *transformer) linear(rows, columns int64) time.Duration {
	moves := halfSize * (t.rows()*(rows+columns) + rows*columns/t.tensor)
	return t.device.Matmul(t.product(rows, columns), float64(moves))
}

// pointwise returns the time to move bytes to and from memory.
func (t *transformer) pointwise(bytes int64) time.Duration { return t.device.Stream(float64(bytes)) }

// exchange returns the time to gather vectors of the hidden size, or to sum them up and scatter them.
func (t *transformer) exchange() time.Duration {
	return t.device.Receive(float64(t.gathered() - t.unit()))
}

// attended returns the arithmetic of attention on one GPU.
func (t *transformer) attended() float64 {
	return t.AttentionFLOPs(t.batch, t.sequence) / float64(t.tensor*t.context)
}

func (t *transformer) attention() time.Duration {
	return cards.Seconds(t.attended() / (t.device.Half * t.device.Reach.Attention))
}

func (t *transformer) attentionBackward() time.Duration {
	return cards.Seconds(shapes.AttentionBackward * t.attended() / (t.device.Half * t.device.Reach.AttentionBackward))
}

// block is one layer of a transformer: it adds the operators of its passes to a decoder.
type block interface {
	forward(d *decoder, layer int32, input int32)
	backward(d *decoder, layer int32)
}

// decoder makes the graph of a step.
type decoder struct {
	transformer
	builder
}

// train returns the model of a step. Blocks are made by a function, one for each layer.
func (t *transformer) train(newBlock func() block) (*Model, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	d := decoder{transformer: *t}
	d.always = t.parameters / t.tensor * t.state
	d.op("embedding", swap.Other, -1, t.pointwise(2*t.unit()), 0)
	hidden := d.output(0)
	blocks := make([]block, t.Layers)
	for i := range blocks {
		blocks[i] = newBlock()
		blocks[i].forward(&d, int32(i), hidden)
		hidden = d.output(int32(i + 1))
	}
	d.classify(hidden)
	for i := len(blocks) - 1; i >= 0; i-- {
		blocks[i].backward(&d, int32(i))
	}
	d.op("embedding.backward", swap.Other, -1, t.pointwise(2*t.unit()), t.unit())
	d.phase = swap.Update
	d.op("update", swap.Other, -1, t.pointwise(2*d.always), 0)
	return &Model{
		Graph: &d.graph, Device: t.device, GPUs: t.tensor * t.context, Parameters: t.parameters, Always: d.always,
		FLOPs: t.StepFLOPs(t.batch, t.sequence, t.parameters),
	}, nil
}

// output adds what the last operator hands to a layer, or to the classifier after the last of them.
func (d *decoder) output(layer int32) int32 {
	if int64(layer) == d.Layers {
		return d.writes(swap.Tensor{Name: "hidden", Bytes: d.unit(), Layer: -1})
	}
	return d.writes(swap.Tensor{Name: fmt.Sprintf("%d.input", layer), Bytes: d.unit(), Layer: layer, Role: swap.LayerInput})
}

// classify adds the last normalization, the logits and the loss, forward and backward.
func (d *decoder) classify(hidden int32) {
	took := d.exchange() + d.linear(d.Hidden, d.Vocabulary) + d.pointwise(2*d.logits())
	d.op("norm", swap.Norm, -1, d.pointwise(2*d.unit()), 0, hidden)
	normed := d.writes(swap.Tensor{Name: "normed", Bytes: d.unit(), Layer: -1, Recompute: d.pointwise(2 * d.unit()), From: []int32{hidden}})
	d.op("loss", swap.Softmax, -1, took, d.gathered()+d.logits(), normed)
	d.phase = swap.Backward
	d.op("loss.backward", swap.Softmax, -1, 2*took, 2*d.gathered()+d.logits(), normed)
	d.op("norm.backward", swap.Norm, -1, d.pointwise(4*d.unit()), 2*d.unit(), hidden)
}

// layerOp adds an operator of a layer.
func (d *decoder) layerOp(layer int32, name string, kind swap.OpType, took time.Duration, holds int64, reads ...int32) {
	d.op(fmt.Sprintf("%d.%s", layer, name), kind, layer, took, holds, reads...)
}

// saves adds a tensor that the last operator writes and that can be recomputed from others in a time.
func (d *decoder) saves(layer int32, name string, bytes int64, again time.Duration, from ...int32) int32 {
	return d.writes(swap.Tensor{
		Name: fmt.Sprintf("%d.%s", layer, name), Bytes: bytes, Layer: layer, Recompute: again, From: from, Row: bytes / d.rows(),
	})
}

// saveAttention adds the output of attention.
func (d *decoder) saveAttention(layer int32, name string, bytes int64, again time.Duration, from ...int32) int32 {
	t := d.saves(layer, name, bytes, again, from...)
	d.graph.Tensors[t].Role = swap.AttentionOut
	return t
}
