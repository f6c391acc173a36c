package graphs

import "fmt"

// resNet is one of He et al. (2016, table 1) for images of a size, with bottlenecks in four stages; as in fb.resnet.torch, which Dymem took
// it from, the 3 x 3 convolutions have the stride.
func resNet(size int64, bare bool, blocks ...int) *layers {
	n := &layers{input: shape{3, size, size}, bare: bare}
	l := n.normReLU("stem", n.conv("stem.conv", image, filters{64, 1, false}, square(7, 2, 3)))
	l = n.pool("stem.pool", l, square(3, 2, 1))
	for stage, count := range blocks {
		for i := range count {
			stride := int64(1)
			if i == 0 && stage > 0 {
				stride = 2
			}
			l = n.bottleneck(fmt.Sprintf("stage%d.%d", stage+1, i), l, 64<<stage, stride)
		}
	}
	n.softmax("softmax", n.linear("fc", n.average("pool", l), 1000))
	return n
}

func (n *layers) normReLU(name string, in int) int {
	return n.relu(name+".relu", n.batchNorm(name+".bn", in))
}

// bottleneck is a block whose output has four times its width.
func (n *layers) bottleneck(name string, in int, width, stride int64) int {
	l := n.normReLU(name+".1", n.conv(name+".conv1", in, filters{width, 1, false}, square(1, 1, 0)))
	l = n.normReLU(name+".2", n.conv(name+".conv2", l, filters{width, 1, false}, square(3, stride, 1)))
	l = n.batchNorm(name+".3.bn", n.conv(name+".conv3", l, filters{4 * width, 1, false}, square(1, 1, 0)))
	return n.shortcut(name, in, l, stride)
}

// shortcut adds the input of a block to its output, through a convolution where their shapes differ.
func (n *layers) shortcut(name string, in, out int, stride int64) int {
	if n.shapeOf(in) != n.shapeOf(out) {
		in = n.conv(name+".shortcut", in, filters{n.shapeOf(out).channels, 1, false}, square(1, stride, 0))
		in = n.batchNorm(name+".shortcut.bn", in)
	}
	return n.relu(name+".relu", n.sum(name+".join", out, in))
}

// resNet32 is that for CIFAR-10 (He et al., section 4.2): 15 blocks of two convolutions, with 16, 32 and 64 channels.
func resNet32(size int64, bare bool) *layers {
	n := &layers{input: shape{3, size, size}, bare: bare}
	l := n.normReLU("stem", n.conv("stem.conv", image, filters{16, 1, false}, same(3, 3)))
	for stage := range 3 {
		for i := range 5 {
			name, width, stride := fmt.Sprintf("stage%d.%d", stage+1, i), int64(16)<<stage, int64(1)
			if i == 0 && stage > 0 {
				stride = 2
			}
			b := n.normReLU(name+".1", n.conv(name+".conv1", l, filters{width, 1, false}, square(3, stride, 1)))
			b = n.batchNorm(name+".2.bn", n.conv(name+".conv2", b, filters{width, 1, false}, same(3, 3)))
			l = n.shortcut(name, l, b, stride)
		}
	}
	n.softmax("softmax", n.linear("fc", n.average("pool", l), 10))
	return n
}
