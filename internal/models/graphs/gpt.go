package graphs

import "gm/internal/swap"

// gptBlock is a layer of MEMO's GPTs. What it saves are the skeletal tensors of the paper's figure 4, 16bsh numbers with a feed-forward of 4h:
// the statistics of the normalizations and of the softmax, a fiftieth of that, are left out as there.
type gptBlock struct {
	input, norm1, q, k, v, attended, residual, norm2, up, activated int32
}

func (b *gptBlock) forward(d *decoder, layer int32, input int32) {
	u, g, f := d.unit(), d.gathered(), d.inner()
	norm := d.pointwise(2 * u)
	b.input = input
	d.layerOp(layer, "norm1", swap.Norm, norm, 0, input)
	b.norm1 = d.saves(layer, "norm1", u, norm, input)

	qkv := d.exchange() + d.linear(d.Hidden, 3*d.Hidden)
	d.layerOp(layer, "qkv", swap.Linear, qkv, g+3*u, b.norm1) // in one, before they are kept apart
	b.q = d.saves(layer, "q", u, qkv/3, b.norm1)
	b.k = d.saves(layer, "k", u, qkv/3, b.norm1)
	b.v = d.saves(layer, "v", u, qkv/3, b.norm1)

	d.layerOp(layer, "attention", swap.Attention, d.attention(), d.ring(), b.q, b.k, b.v)
	b.attended = d.saveAttention(layer, "attention", u, d.attention(), b.q, b.k, b.v)

	out := d.linear(d.Hidden, d.Hidden) + d.exchange() + d.pointwise(3*u) // and adds its input
	d.layerOp(layer, "out", swap.Linear, out, g+u, b.attended, input)
	b.residual = d.saves(layer, "residual", u, out, b.attended, input)

	d.layerOp(layer, "norm2", swap.Norm, norm, 0, b.residual)
	b.norm2 = d.saves(layer, "norm2", u, norm, b.residual)

	up := d.exchange() + d.linear(d.Hidden, d.FFN)
	d.layerOp(layer, "up", swap.Linear, up, g, b.norm2)
	b.up = d.saves(layer, "up", f, up, b.norm2)

	d.layerOp(layer, "gelu", swap.Activation, d.pointwise(2*f), 0, b.up)
	b.activated = d.saves(layer, "gelu", f, d.pointwise(2*f), b.up)

	d.layerOp(layer, "down", swap.Linear, d.linear(d.FFN, d.Hidden)+d.exchange()+d.pointwise(3*u), g+u, b.activated, b.residual)
}

// ring returns what context parallelism holds: the keys and values of the next GPU, and those on the way.
func (d *decoder) ring() int64 {
	if d.context == 1 {
		return 0
	}
	return 4 * d.keys()
}

// backward holds the gradient of the layer's output throughout: it is also that of the residual.
func (b *gptBlock) backward(d *decoder, layer int32) {
	u, g, f := d.unit(), d.gathered(), d.inner()
	d.layerOp(layer, "down.backward", swap.Linear, d.exchange()+2*d.linear(d.FFN, d.Hidden), u+g+f, b.activated)
	d.layerOp(layer, "gelu.backward", swap.Activation, d.pointwise(3*f), u+2*f, b.up)
	d.layerOp(layer, "up.backward", swap.Linear, 2*d.linear(d.Hidden, d.FFN)+d.exchange(), u+f+2*g+u, b.norm2)
	d.layerOp(layer, "norm2.backward", swap.Norm, d.pointwise(4*u), 3*u, b.residual)
	d.layerOp(layer, "out.backward", swap.Linear, d.exchange()+2*d.linear(d.Hidden, d.Hidden), u+g+u, b.attended)
	// FlashAttention sums the gradient of the queries up in single precision.
	d.layerOp(layer, "attention.backward", swap.Attention, d.attentionBackward(), 2*u+3*u+2*u+2*d.ring(), b.q, b.k, b.v, b.attended)
	d.layerOp(layer, "qkv.backward", swap.Linear, 2*d.linear(d.Hidden, 3*d.Hidden)+d.exchange(), u+3*u+2*g+u, b.norm1)
	d.layerOp(layer, "norm1.backward", swap.Norm, d.pointwise(4*u), 3*u, b.input)
}
