package network

import (
	"fmt"
	"strings"
	"time"
)

// Device is a GPU as far as the times of operators depend on it.
type Device struct {
	Name   string
	About  string  // where its rates are from
	Single float64 // FLOP/s in single precision
	Half   float64 // FLOP/s in half precision; MFU is in parts of it
	Memory float64 // bytes a second
	Peer   float64 // bytes a second that it receives from GPUs beside it, 0 if there are none
	Reach  Reach
}

// Reach is what kernels get out of a device, in parts of its rates.
type Reach struct {
	Conv3x3, Conv                float64 // convolutions of 3 x 3 and stride 1, which have fast algorithms, and others
	Bare                         float64 // convolutions without a workspace, of what they reach with one
	Matmul                       float64
	Attention, AttentionBackward float64 // FlashAttention
	Memory                       float64
	Peer                         float64
}

// Devices lists the devices.
func Devices() []Device {
	return []Device{
		{
			Name: "titan-x",
			About: "GeForce GTX TITAN X (Maxwell), 12 GB, Dymem's testbed; rates by its data sheet, parts by github.com/jcjohnson/cnn-benchmarks (cuDNN 5): " +
				"VGG-16 runs at 0.85 of the peak, ResNets and AlexNet at less; without a workspace 60 % is lost (Dymem, section 5.1)",
			Single: 6.6e12, Half: 6.6e12, Memory: 336e9,
			Reach: Reach{Conv3x3: 0.85, Conv: 0.45, Bare: 0.4, Matmul: 0.85, Attention: 0.5, AttentionBackward: 0.5, Memory: 0.8},
		},
		{
			Name: "a800",
			About: "A800 80 GB, MEMO's testbed; rates by its data sheet (NVLink: 200 GB/s each way), attention by FlashAttention-2 (arXiv 2307.08691: up to " +
				"0.73 of an A100's peak forward, 0.63 backward)",
			Single: 19.5e12, Half: 312e12, Memory: 2.0e12, Peer: 200e9,
			Reach: Reach{Conv3x3: 0.7, Conv: 0.5, Bare: 0.4, Matmul: 0.8, Attention: 0.73, AttentionBackward: 0.63, Memory: 0.85, Peer: 0.8},
		},
		{
			Name: "h200",
			About: "H200, rates as measured: matrix products at 790 TFLOP/s at best, copies within its memory at 4.3 TB/s; parts by a step of 8 Llama-7B " +
				"layers on 65,536 tokens, 3.20 s, of which the forward pass is 0.84 s",
			Single: 67e12, Half: 790e12, Memory: 4.3e12, Peer: 450e9,
			Reach: Reach{Conv3x3: 0.7, Conv: 0.5, Bare: 0.4, Matmul: 0.9, Attention: 0.73, AttentionBackward: 0.63, Memory: 0.9, Peer: 0.8},
		},
	}
}

// LookupDevice returns the device of a name.
func LookupDevice(name string) (Device, error) {
	var names []string
	for _, d := range Devices() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Device{}, fmt.Errorf("unknown device %q, expected one of %s", name, strings.Join(names, ", "))
}

// halfSize is the size of a number in half precision, in bytes.
const halfSize = 2

// rate returns the FLOP/s with numbers of so many bytes.
func (d *Device) rate(element int64) float64 {
	if element <= halfSize {
		return d.Half
	}
	return d.Single
}

// stream returns the time to move so many bytes to and from memory.
func (d *Device) stream(bytes float64) time.Duration {
	return seconds(bytes / (d.Memory * d.Reach.Memory))
}

// receive returns the time to get so many bytes from the GPUs beside it.
func (d *Device) receive(bytes float64) time.Duration {
	if bytes == 0 {
		return 0
	}
	return seconds(bytes / (d.Peer * d.Reach.Peer))
}

// matmul returns the time of a matrix product in half precision that moves so many bytes.
func (d *Device) matmul(flops, bytes float64) time.Duration {
	return max(seconds(flops/(d.Half*d.Reach.Matmul)), d.stream(bytes))
}

// seconds returns a time of at least a nanosecond: no operator takes none.
func seconds(s float64) time.Duration {
	return max(1, time.Duration(min(s, maxSeconds)*float64(time.Second)))
}

// maxSeconds keeps a time within its type; graphs with such are refused.
const maxSeconds = 1e9
