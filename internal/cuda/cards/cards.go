// Package cards is the catalogue of GPUs: for each its product name, and what was looked up or measured of its memory, arithmetic, copies
// to the host and driver calls. Unknown figures are zero.
package cards

import (
	"fmt"
	"strings"
	"time"
)

// Card is one kind of GPU.
type Card struct {
	Name     string // of the product, such as RTX A6000
	GB       int    // nominal memory of the product
	Capacity int64  // bytes of memory that CUDA reports; 0 if unknown
	Device   *Device
	Copies   *Copies
	Calls    map[string][]Point // costs of driver calls by function; "clearing": of memory, for which cuMemAlloc and cuMemCreate wait
}

// Copies are rates of copies between a GPU and pinned memory of its host.
type Copies struct {
	Product, Driver string        // as the driver reports them
	Alone           []Copy        // by growing size, one direction at a time
	Both            int64         // bytes per second in each direction when both are in use
	Touch, Register time.Duration // time to touch 1 GiB of host memory for the first time, and to pin 1 GiB of touched memory
}

// Copy is the rate of copies of one size, in bytes per second: in is to the GPU.
type Copy struct{ Bytes, In, Out int64 }

// Point is the measured cost of a driver call for one size.
type Point struct {
	Bytes int64
	Cost  time.Duration
}

// All returns the cards in order of growing memory.
//
// Capacities are those that PyTorch prints when it is out of memory ("GPU 0 has a total capacity of 39.38 GiB"). They are the lower ones
// of public reports: with the driver's version and error correction they differ by some tenths of a GiB. A card of N GB has less than N
// GiB; the driver's own memory is not included.
func All() []Card {
	return []Card{
		{Name: "GTX 1650", GB: 4, Capacity: gib(3.81)},
		{Name: "RTX 2060", GB: 6, Capacity: gib(5.79)},
		{Name: "RTX 3070", GB: 8, Capacity: gib(7.76)},
		{Name: "RTX 3080", GB: 10, Capacity: gib(9.77)},
		{Name: "RTX 2080 Ti", GB: 11, Capacity: gib(10.73)},
		{Name: "GeForce GTX TITAN X", GB: 12, Device: titanX()},
		{Name: "RTX 3060", GB: 12, Capacity: gib(11.75)},
		{Name: "T4", GB: 16, Capacity: gib(14.56)},
		{Name: "RTX A4000", GB: 16, Capacity: gib(15.61)},
		{Name: "L4", GB: 24, Capacity: gib(21.95)},
		{Name: "RTX 4090", GB: 24, Capacity: gib(23.52)},
		{Name: "A100", GB: 40, Capacity: gib(39.38)},
		{Name: "L40S", GB: 48, Capacity: gib(44.34)},
		{Name: "RTX A6000", GB: 48, Capacity: gib(47.40)},
		{Name: "A800", GB: 80, Device: a800()},
		{Name: "H100", GB: 80, Capacity: gib(79.11)},
		{Name: "RTX PRO 6000", GB: 96, Capacity: gib(94.97)},
		H200(),
		{Name: "B200", GB: 192, Capacity: gib(178.35)},
	}
}

// gib returns a number of GiB in bytes, in whole MiB.
func gib(n float64) int64 { return int64(n*1024) << 20 }

// LookupDevice returns the device with a name, such as h200.
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

// Devices returns the devices of the cards that have one.
func Devices() []Device {
	var all []Device
	for _, c := range All() {
		if c.Device != nil {
			all = append(all, *c.Device)
		}
	}
	return all
}
