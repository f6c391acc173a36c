package cards

import "time"

// Device holds the figures of a GPU that determine the times of operators. The model is a roofline: an operator takes as long as its
// arithmetic or its memory traffic, whichever is longer.
type Device struct {
	Name   string  // in specs, such as h200
	About  string  // source of its rates
	Single float64 // FLOP/s in single precision
	Half   float64 // FLOP/s in half precision, the base of MFU
	Memory float64 // bytes per second
	Peer   float64 // bytes per second received from GPUs of the same host, 0 if there are none
	Reach  Reach
}

// Reach is the fraction of a device's rates that kernels reach.
type Reach struct {
	Conv3x3, Conv                float64 // convolutions of 3 x 3 with stride 1, which have fast algorithms, and other convolutions
	Bare                         float64 // convolutions without a workspace, as a fraction of those with one
	Matmul                       float64
	Attention, AttentionBackward float64 // FlashAttention
	Memory                       float64
	Peer                         float64
}

func titanX() *Device {
	return &Device{
		Name: "titan-x",
		About: "GeForce GTX TITAN X (Maxwell), 12 GB, Dymem's testbed; rates by its data sheet, parts by github.com/jcjohnson/cnn-benchmarks (cuDNN 5): " +
			"VGG-16 runs at 0.85 of the peak, ResNets and AlexNet at less; without a workspace 60 % is lost (Dymem, section 5.1)",
		Single: 6.6e12, Half: 6.6e12, Memory: 336e9,
		Reach: Reach{Conv3x3: 0.85, Conv: 0.45, Bare: 0.4, Matmul: 0.85, Attention: 0.5, AttentionBackward: 0.5, Memory: 0.8},
	}
}

func a800() *Device {
	return &Device{
		Name: "a800",
		About: "A800 80 GB, MEMO's testbed; rates by its data sheet (NVLink: 200 GB/s each way), attention by FlashAttention-2 (arXiv 2307.08691: up to " +
			"0.73 of an A100's peak forward, 0.63 backward)",
		Single: 19.5e12, Half: 312e12, Memory: 2.0e12, Peer: 200e9,
		Reach: Reach{Conv3x3: 0.7, Conv: 0.5, Bare: 0.4, Matmul: 0.8, Attention: 0.73, AttentionBackward: 0.63, Memory: 0.85, Peer: 0.8},
	}
}

// halfSize is the size of a number in half precision, in bytes.
const halfSize = 2

// Rate returns the FLOP/s for numbers of a size in bytes.
func (d *Device) Rate(element int64) float64 {
	if element <= halfSize {
		return d.Half
	}
	return d.Single
}

// Stream returns the time to move bytes to and from memory.
func (d *Device) Stream(bytes float64) time.Duration {
	return Seconds(bytes / (d.Memory * d.Reach.Memory))
}

// Receive returns the time to receive bytes from GPUs of the same host.
func (d *Device) Receive(bytes float64) time.Duration {
	if bytes == 0 {
		return 0
	}
	return Seconds(bytes / (d.Peer * d.Reach.Peer))
}

// Matmul returns the time of a matrix product in half precision that moves bytes.
func (d *Device) Matmul(flops, bytes float64) time.Duration {
	return max(Seconds(flops/(d.Half*d.Reach.Matmul)), d.Stream(bytes))
}

// Seconds converts seconds to a duration of at least a nanosecond, since no operator takes no time.
func Seconds(s float64) time.Duration {
	return max(1, time.Duration(min(s, maxSeconds)*float64(time.Second)))
}

// maxSeconds keeps a duration within its type. Graphs with such times are refused.
const maxSeconds = 1e9
