package graphs

import "gm/internal/swap"

// llamaBlock is a layer of a Llama: RMSNorm, rotary embedding, heads that may share keys and values, SwiGLU. It saves what PyTorch's autograd
// does without a compiler, attention by scaled_dot_product_attention, normalizations in one kernel.
type llamaBlock struct {
	input, norm1, q, k, v, attended, sums, residual, norm2, gate, up, silu, product int32
}

// statistic is the size of what the softmax leaves of each row: the logarithm of a sum, in single precision.
const statistic = 4

func (b *llamaBlock) forward(d *decoder, layer int32, input int32) {
	u, g, f := d.unit(), d.gathered(), d.inner()
	norm := d.pointwise(2 * u)
	b.input = input
	d.layerOp(layer, "norm1", swap.Norm, norm, 0, input)
	b.norm1 = d.saves(layer, "norm1", u, norm, input)
	b.project(d, layer)

	d.layerOp(layer, "attention", swap.Attention, d.attention(), d.ring(), b.q, b.k, b.v)
	b.attended = d.saveAttention(layer, "attention", u, d.attention(), b.q, b.k, b.v)
	b.sums = d.saveAttention(layer, "attention.sums", statistic*d.rows()*d.Heads, d.attention(), b.q, b.k, b.v)

	out := d.linear(d.Hidden, d.Hidden) + d.exchange() + d.pointwise(3*u)
	d.layerOp(layer, "out", swap.Linear, out, g+u, b.attended, input)
	b.residual = d.saves(layer, "residual", u, out, b.attended, input)
	d.layerOp(layer, "norm2", swap.Norm, norm, 0, b.residual)
	b.norm2 = d.saves(layer, "norm2", u, norm, b.residual)

	up := d.exchange() + 2*d.linear(d.Hidden, d.FFN)
	d.layerOp(layer, "up", swap.Linear, up, g, b.norm2)
	b.gate = d.saves(layer, "gate", f, up/2, b.norm2)
	b.up = d.saves(layer, "up", f, up/2, b.norm2)
	d.layerOp(layer, "silu", swap.Activation, d.pointwise(2*f), 0, b.gate)
	b.silu = d.saves(layer, "silu", f, d.pointwise(2*f), b.gate)
	d.layerOp(layer, "product", swap.Other, d.pointwise(3*f), 0, b.silu, b.up)
	b.product = d.saves(layer, "product", f, d.pointwise(3*f), b.silu, b.up)
	d.layerOp(layer, "down", swap.Linear, d.linear(d.FFN, d.Hidden)+d.exchange()+d.pointwise(3*u), g+u, b.product, b.residual)
}

// project adds queries, keys and values, the first two turned by the rotary embedding.
func (b *llamaBlock) project(d *decoder, layer int32) {
	u, kv := d.unit(), d.keys()
	q := d.linear(d.Hidden, d.Hidden) + d.pointwise(2*u)
	k := d.linear(d.Hidden, d.Hidden/d.Heads*d.Groups)
	rotated := k + d.pointwise(2*kv)
	d.layerOp(layer, "qkv", swap.Linear, d.exchange()+q+rotated+k, d.gathered()+u+kv, b.norm1)
	b.q = d.saves(layer, "q", u, d.exchange()+q, b.norm1)
	b.k = d.saves(layer, "k", kv, rotated, b.norm1)
	b.v = d.saves(layer, "v", kv, k, b.norm1)
}

// backward holds the gradient of the layer's output throughout: it is also that of the residual.
func (b *llamaBlock) backward(d *decoder, layer int32) {
	u, g, f, kv := d.unit(), d.gathered(), d.inner(), d.keys()
	d.layerOp(layer, "down.backward", swap.Linear, d.exchange()+2*d.linear(d.FFN, d.Hidden), u+g+f, b.product)
	d.layerOp(layer, "product.backward", swap.Other, d.pointwise(5*f), u+3*f, b.silu, b.up)
	d.layerOp(layer, "silu.backward", swap.Activation, d.pointwise(3*f), u+3*f, b.gate)
	d.layerOp(layer, "up.backward", swap.Linear, 4*d.linear(d.Hidden, d.FFN)+d.exchange(), u+2*f+2*g+u, b.norm2)
	d.layerOp(layer, "norm2.backward", swap.Norm, d.pointwise(4*u), 3*u, b.residual)
	d.layerOp(layer, "out.backward", swap.Linear, d.exchange()+2*d.linear(d.Hidden, d.Hidden), u+g+u, b.attended)
	d.layerOp(layer, "attention.backward", swap.Attention, d.attentionBackward(), 2*u+u+2*kv+2*u+2*d.ring(), b.q, b.k, b.v, b.attended, b.sums)
	project := d.linear(d.Hidden, d.Hidden) + 2*d.linear(d.Hidden, d.Hidden/d.Heads*d.Groups) + d.pointwise(u+kv)
	d.layerOp(layer, "qkv.backward", swap.Linear, 2*project+d.exchange(), u+u+2*kv+2*g+u, b.norm1)
	d.layerOp(layer, "norm1.backward", swap.Norm, d.pointwise(4*u), 3*u, b.input)
}
