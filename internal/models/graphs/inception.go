package graphs

import "fmt"

// inceptionV4 is that of Szegedy et al. (2017), figures 3 to 9.
func inceptionV4(size int64, bare bool) *layers {
	n := &layers{input: shape{3, size, size}, bare: bare}
	l := n.stem()
	for i := range 4 {
		l = n.inceptionA(fmt.Sprintf("a%d", i+1), l)
	}
	l = n.reductionA("reduction-a", l)
	for i := range 7 {
		l = n.inceptionB(fmt.Sprintf("b%d", i+1), l)
	}
	l = n.reductionB("reduction-b", l)
	for i := range 3 {
		l = n.inceptionC(fmt.Sprintf("c%d", i+1), l)
	}
	n.softmax("softmax", n.linear("fc", n.dropout("drop", n.average("pool", l)), 1000))
	return n
}

// part is a convolution of a branch: the number of its filters and their window.
type part struct {
	filters int64
	window  window
}

// branch is a row of convolutions, each with batch normalization and ReLU.
func (n *layers) branch(name string, in int, parts ...part) int {
	for i, p := range parts {
		at := fmt.Sprintf("%s.%d", name, i)
		in = n.normReLU(at, n.conv(at+".conv", in, filters{p.filters, 1, false}, p.window))
	}
	return in
}

// The windows of Inception-v4. Those that are halves have stride 2 and no padding.
var (
	one     = same(1, 1)
	three   = same(3, 3)
	row3    = same(1, 3)
	column3 = same(3, 1)
	row7    = same(1, 7)
	column7 = same(7, 1)
	inner3  = square(3, 1, 0)
	half3   = square(3, 2, 0)
)

func (n *layers) stem() int {
	l := n.branch("stem", image, part{32, half3}, part{32, inner3}, part{64, three})
	l = n.concat("stem.1", n.pool("stem.1.pool", l, half3), n.branch("stem.1", l, part{96, half3}))
	l = n.concat("stem.2", n.branch("stem.2a", l, part{64, one}, part{96, inner3}),
		n.branch("stem.2b", l, part{64, one}, part{64, row7}, part{64, column7}, part{96, inner3}))
	return n.concat("stem.3", n.branch("stem.3", l, part{192, half3}), n.pool("stem.3.pool", l, half3))
}

func (n *layers) inceptionA(name string, in int) int {
	return n.concat(name,
		n.branch(name+".1", in, part{96, one}),
		n.branch(name+".2", in, part{64, one}, part{96, three}),
		n.branch(name+".3", in, part{64, one}, part{96, three}, part{96, three}),
		n.branch(name+".4", n.pool(name+".pool", in, three), part{96, one}))
}

func (n *layers) reductionA(name string, in int) int {
	return n.concat(name,
		n.branch(name+".1", in, part{384, half3}),
		n.branch(name+".2", in, part{192, one}, part{224, three}, part{256, half3}),
		n.pool(name+".pool", in, half3))
}

func (n *layers) inceptionB(name string, in int) int {
	return n.concat(name,
		n.branch(name+".1", in, part{384, one}),
		n.branch(name+".2", in, part{192, one}, part{224, row7}, part{256, column7}),
		n.branch(name+".3", in, part{192, one}, part{192, column7}, part{224, row7}, part{224, column7}, part{256, row7}),
		n.branch(name+".4", n.pool(name+".pool", in, three), part{128, one}))
}

func (n *layers) reductionB(name string, in int) int {
	return n.concat(name,
		n.branch(name+".1", in, part{192, one}, part{192, half3}),
		n.branch(name+".2", in, part{256, one}, part{256, row7}, part{320, column7}, part{320, half3}),
		n.pool(name+".pool", in, half3))
}

func (n *layers) inceptionC(name string, in int) int {
	second := n.branch(name+".2", in, part{384, one})
	third := n.branch(name+".3", in, part{384, one}, part{448, column3}, part{512, row3})
	return n.concat(name,
		n.branch(name+".1", in, part{256, one}),
		n.branch(name+".2a", second, part{256, row3}), n.branch(name+".2b", second, part{256, column3}),
		n.branch(name+".3a", third, part{256, row3}), n.branch(name+".3b", third, part{256, column3}),
		n.branch(name+".4", n.pool(name+".pool", in, three), part{256, one}))
}
