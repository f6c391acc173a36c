package graphs

import "fmt"

// alexNet is Caffe's, with two groups of channels where Krizhevsky et al. (2012) had two GPUs. It has the 23 steps that Dymem counts.
func alexNet() *layers {
	n := &layers{input: shape{3, 227, 227}}
	l := n.convReLU("1", image, filters{96, 1, true}, square(11, 4, 0))
	l = n.pool("pool1", n.crossNorm("norm1", l), square(3, 2, 0))
	l = n.convReLU("2", l, filters{256, 2, true}, same(5, 5))
	l = n.pool("pool2", n.crossNorm("norm2", l), square(3, 2, 0))
	l = n.convReLU("3", l, filters{384, 1, true}, same(3, 3))
	l = n.convReLU("4", l, filters{384, 2, true}, same(3, 3))
	l = n.convReLU("5", l, filters{256, 2, true}, same(3, 3))
	n.classify(n.pool("pool5", l, square(3, 2, 0)), 6)
	return n
}

// vgg16 is configuration D of Simonyan and Zisserman (2014).
func vgg16() *layers {
	n := &layers{input: shape{3, 224, 224}}
	l := image
	for stage, channels := range []int64{64, 128, 256, 512, 512} {
		convolutions := 3
		if stage < 2 {
			convolutions = 2
		}
		for i := range convolutions {
			l = n.convReLU(fmt.Sprintf("%d_%d", stage+1, i+1), l, filters{channels, 1, true}, same(3, 3))
		}
		l = n.pool(fmt.Sprintf("pool%d", stage+1), l, square(2, 2, 0))
	}
	n.classify(l, 6)
	return n
}

func (n *layers) convReLU(name string, in int, f filters, w window) int {
	return n.relu("relu"+name, n.conv("conv"+name, in, f, w))
}

// classify adds three linear layers; number is that of the first.
func (n *layers) classify(in, number int) {
	for i := number; i < number+2; i++ {
		in = n.relu(fmt.Sprintf("relu%d", i), n.linear(fmt.Sprintf("fc%d", i), in, 4096))
		in = n.dropout(fmt.Sprintf("drop%d", i), in)
	}
	n.softmax("softmax", n.linear(fmt.Sprintf("fc%d", number+2), in, 1000))
}
