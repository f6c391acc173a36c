// Package testbed holds machines that papers measured on, as far as schedules depend on them.
package testbed

import (
	"fmt"
	"strings"

	"gm/internal/swap/link"
)

// Testbed is such a machine.
type Testbed struct {
	Name   string // of its GPU, such as titan-x
	About  string // whose it is, and where the figures are from
	Device int64  // bytes of a GPU's memory
	Host   int64  // bytes of host memory for each GPU; 0 where the paper does not say
	Stated int64  // bytes a second of the link between a GPU and the host each way, as the paper or a data sheet states it
	Copies int64  // bytes a second that copies of pinned memory get of that, each way, while all GPUs copy
}

// All returns the testbeds by name.
func All() []Testbed {
	return []Testbed{
		{
			Name: "a800", Device: 7915 * (1 << 30) / 100, Host: 2e12 / 8, Stated: 32e9, Copies: 12e9,
			About: "MEMO's (SIGMOD 2025, section 5.1): 8 A800 of 80 GB, of which PyTorch sees 79.15 GiB, 2 TB of host memory for them, 32 GB/s to the " +
				"host. Two GPUs share a PCIe 4 link, of which an A100 gets 24 to 25 GB/s alone",
		},
		{
			Name: "titan-x", Device: 12 << 30, Host: 32 << 30, Stated: 16e9, Copies: 12e9,
			About: "Dymem's (HPDC 2020, section 5): a GeForce GTX TITAN X of 12 GB, 32 GB of host memory, PCIe 3 of 16 GB/s, of which copies of pinned " +
				"memory get 12",
		},
		{
			Name: "v100", Device: 1578 * (1 << 30) / 100, Stated: 16e9, Copies: 12e9,
			About: "Ravenstore's (2023), of which its report says that it has a V100: one of 16 GB, of which PyTorch sees 15.78 GiB. PCIe 3 of 16 GB/s by " +
				"its data sheet, copies as on the TITAN X's link; host memory without limit",
		},
	}
}

// Lookup returns the testbed with a name.
func Lookup(name string) (Testbed, error) {
	var names []string
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Testbed{}, fmt.Errorf("unknown testbed %q, expected one of %s", name, strings.Join(names, ", "))
}

// Link returns the link of a GPU, with copies of any size at the rate Copies.
func (t *Testbed) Link() (*link.Link, error) { return link.Even(t.Name, t.Copies) }
