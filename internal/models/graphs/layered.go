package graphs

import (
	"fmt"

	"gm/internal/models/shapes"
)

// layered lists the networks of Dymem's evaluation.
func layered() []Entry {
	batch := func(size int64) shapes.Parameter {
		return shapes.Parameter{Name: "batch", About: "images in a step", Default: size, Least: 1, Most: 1 << 16}
	}
	common := []shapes.Parameter{
		{Name: "element", About: "bytes of a number: 4 for single precision, 2 for half", Default: 4, Least: 2, Most: 4},
		{
			Name: "workspace", About: "bytes that a convolution has for its algorithm; 0 for the slow ones that need none",
			Default: 64 << 20, Least: 0, Most: 1 << 40,
		},
	}
	picture := func(size, least int64) shapes.Parameter {
		return shapes.Parameter{Name: "image", About: "height and width of an image", Default: size, Least: least, Most: 2048}
	}
	norm := shapes.Parameter{Name: "norm", About: "1 with batch normalization, 0 without", Default: 1, Least: 0, Most: 1}
	entry := func(name, about string, make func(size int64, bare bool) *layers, parameters ...shapes.Parameter) Entry {
		return Entry{name, about, "titan-x", append(parameters, common...), func(v values) (*Model, error) {
			if v.of["element"] == 3 {
				return nil, fmt.Errorf("element=3: numbers have 2 or 4 bytes")
			}
			return make(v.of["image"], v.of["norm"] == 0).train(step{v.device, v.of["batch"], v.of["element"], v.of["workspace"]})
		}}
	}
	bottlenecks := func(blocks ...int) func(int64, bool) *layers {
		return func(size int64, bare bool) *layers { return resNet(size, bare, blocks...) }
	}
	return []Entry{
		entry("alexnet", "AlexNet of Caffe, 61 million parameters", func(int64, bool) *layers { return alexNet() }, batch(256)),
		entry("vgg-16", "VGG-16, 138 million parameters", func(int64, bool) *layers { return vgg16() }, batch(64)),
		entry("resnet-32", "ResNet-32 for CIFAR-10, 0.46 million parameters", resNet32, batch(100), picture(32, 8), norm),
		entry("resnet-50", "ResNet-50, 25.6 million parameters", bottlenecks(3, 4, 6, 3), batch(100), picture(224, 32), norm),
		entry("resnet-101", "ResNet-101, 44.5 million parameters", bottlenecks(3, 4, 23, 3), batch(100), picture(224, 32), norm),
		entry("resnet-152", "ResNet-152, 60.2 million parameters", bottlenecks(3, 8, 36, 3), batch(100), picture(224, 32), norm),
		entry("inception-v4", "Inception-v4, 42.7 million parameters", inceptionV4, batch(128), picture(299, 75), norm),
	}
}
