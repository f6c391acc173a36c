package graphs

import (
	"fmt"

	"gm/internal/swap"
)

// shape is that of an activation, for one image.
type shape struct{ channels, height, width int64 }

func (s shape) elements() int64 { return s.channels * s.height * s.width }

// image is what stands for a layer where the input of the network is meant.
const image = -1

// layer is one of cuDNN's primitives. What it does is for one image.
type layer struct {
	name   string
	kind   swap.OpType
	in     []int // layers, or image
	next   []int // layers
	out    shape
	params int64
	flops  float64 // of the forward pass
	fast   bool    // a convolution that fast algorithms do

	convolution Convolution // but for the batch

	// What its backward pass reads beside the gradient of its output.
	readsIn, readsOut, mask bool

	forward, backward int64 // numbers that the passes move to and from memory
}

// layers is a network, layer by layer.
type layers struct {
	input shape
	all   []layer
	bare  bool // no batch normalization
	small error
}

func (n *layers) shapeOf(l int) shape {
	if l == image {
		return n.input
	}
	return n.all[l].out
}

// add adds a layer and returns it.
func (n *layers) add(l layer) int {
	id := len(n.all)
	if l.out.height <= 0 || l.out.width <= 0 {
		n.small = fmt.Errorf("images of %d x %d are too small: nothing is left of them in layer %s", n.input.height, n.input.width, l.name)
	}
	for _, in := range l.in {
		if in != image {
			n.all[in].next = append(n.all[in].next, id)
		}
	}
	n.all = append(n.all, l)
	return id
}

// window is what a convolution or pooling looks at.
type window struct {
	height, width       int64
	stride              int64
	padHeight, padWidth int64
}

// square is a window of k x k with padding p.
func square(k, stride, p int64) window { return window{k, k, stride, p, p} }

// same is a window of stride 1 that keeps the size.
func same(height, width int64) window { return window{height, width, 1, height / 2, width / 2} }

func (w window) over(s shape, channels int64) shape {
	return shape{channels, (s.height+2*w.padHeight-w.height)/w.stride + 1, (s.width+2*w.padWidth-w.width)/w.stride + 1}
}

// filters is a convolution's: how many, in how many groups of channels, and whether each adds a bias.
type filters struct {
	count, groups int64
	bias          bool
}

func (n *layers) conv(name string, in int, f filters, w window) int {
	x := n.shapeOf(in)
	y := w.over(x, f.count)
	weights := f.count * x.channels / f.groups * w.height * w.width
	params := weights
	if f.bias {
		params += f.count
	}
	moves := x.elements() + y.elements()
	return n.add(layer{
		name: name, kind: swap.Conv, in: []int{in}, out: y, params: params, flops: 2 * float64(weights) * float64(y.height*y.width),
		fast: w == same(3, 3), readsIn: true, forward: moves, backward: 2 * moves,
		convolution: Convolution{
			Channels: x.channels, Height: x.height, Width: x.width, Filters: f.count, Groups: f.groups,
			KernelHeight: w.height, KernelWidth: w.width, Stride: w.stride, PadHeight: w.padHeight, PadWidth: w.padWidth,
		},
	})
}

// batchNorm reads its input twice, once for the mean and the variance. It writes a scale and a shift for each channel.
func (n *layers) batchNorm(name string, in int) int {
	if n.bare {
		return in
	}
	x := n.shapeOf(in)
	return n.add(layer{
		name: name, kind: swap.Norm, in: []int{in}, out: x, params: 2 * x.channels, readsIn: true, forward: 3 * x.elements(), backward: 5 * x.elements(),
	})
}

// crossNorm is AlexNet's local response normalization.
func (n *layers) crossNorm(name string, in int) int {
	x := n.shapeOf(in)
	return n.add(layer{
		name: name, kind: swap.Norm, in: []int{in}, out: x, readsIn: true, readsOut: true, forward: 2 * x.elements(), backward: 4 * x.elements(),
	})
}

func (n *layers) relu(name string, in int) int {
	x := n.shapeOf(in)
	return n.add(layer{name: name, kind: swap.Activation, in: []int{in}, out: x, readsOut: true, forward: 2 * x.elements(), backward: 3 * x.elements()})
}

func (n *layers) pool(name string, in int, w window) int {
	x := n.shapeOf(in)
	y := w.over(x, x.channels)
	moves := x.elements() + y.elements()
	return n.add(layer{name: name, kind: swap.Pool, in: []int{in}, out: y, readsIn: true, readsOut: true, forward: moves, backward: 2 * moves})
}

// average pools each channel to one number.
func (n *layers) average(name string, in int) int {
	x := n.shapeOf(in)
	return n.pool(name, in, window{x.height, x.width, 1, 0, 0})
}

func (n *layers) linear(name string, in int, out int64) int {
	x := n.shapeOf(in)
	y := shape{out, 1, 1}
	weights := x.elements() * out
	moves := x.elements() + out
	return n.add(layer{
		name: name, kind: swap.Linear, in: []int{in}, out: y, params: weights + out, flops: 2 * float64(weights),
		readsIn: true, forward: moves, backward: 2 * moves,
	})
}

func (n *layers) dropout(name string, in int) int {
	x := n.shapeOf(in)
	return n.add(layer{name: name, kind: swap.Dropout, in: []int{in}, out: x, mask: true, forward: 2 * x.elements(), backward: 2 * x.elements()})
}

func (n *layers) softmax(name string, in int) int {
	x := n.shapeOf(in)
	return n.add(layer{name: name, kind: swap.Softmax, in: []int{in}, out: x, readsOut: true, forward: 2 * x.elements(), backward: 2 * x.elements()})
}

// sum adds branches up.
func (n *layers) sum(name string, in ...int) int {
	x := n.shapeOf(in[0])
	moves := int64(len(in)+1) * x.elements()
	return n.add(layer{name: name, kind: swap.Join, in: in, out: x, forward: moves, backward: moves})
}

// concat puts the channels of branches side by side.
func (n *layers) concat(name string, in ...int) int {
	y := n.shapeOf(in[0])
	y.channels = 0
	for _, l := range in {
		y.channels += n.shapeOf(l).channels
	}
	return n.add(layer{name: name, kind: swap.Join, in: in, out: y, forward: 2 * y.elements(), backward: 2 * y.elements()})
}

// order returns the layers in the order in which they run: depth first, a layer once all that it reads has run (Dymem, algorithm 1).
func (n *layers) order() []int {
	order := make([]int, 0, len(n.all))
	seen := make([]int, len(n.all))
	var visit func(l int)
	visit = func(l int) {
		if seen[l]++; seen[l] < len(n.all[l].in) {
			return
		}
		order = append(order, l)
		for _, next := range n.all[l].next {
			visit(next)
		}
	}
	visit(0)
	return order
}
