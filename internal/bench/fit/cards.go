package fit

import (
	"strings"

	"gm/internal/cuda"
)

// Card is a GPU as it is sold.
type Card struct {
	Name     string `json:"name"`
	GB       int    `json:"gb"`             // as it is sold
	Capacity int64  `json:"capacity_bytes"` // what CUDA says that it has
	Usable   int64  `json:"usable_bytes"`   // of these, for the tensors of a process
}

// Short returns the last word of the name.
func (c Card) Short() string { return c.Name[strings.LastIndexByte(c.Name, ' ')+1:] }

// atStart is what a process takes of a card before its first tensor, in bytes: CUDA's context and the kernels that are loaded. With PyTorch
// it is about 0.5 GiB, with many libraries more.
const atStart = 512 << 20

// Cards returns the cards that programs are tried on, the smallest first. The capacities are those that PyTorch prints when it is out
// of memory ("GPU 0 has a total capacity of 39.38 GiB"), the low ones of public reports: with the driver's version and error
// correction they differ by some tenths of a GiB. A card of N GB has fewer than N GiB, and what the driver keeps is not in them.
func Cards() []Card {
	cards := []Card{
		{Name: "L4", GB: 24, Capacity: mib(21.95)},
		{Name: "RTX 4090", GB: 24, Capacity: mib(23.52)},
		{Name: "A100", GB: 40, Capacity: mib(39.38)},
		{Name: "L40S", GB: 48, Capacity: mib(44.34)},
		{Name: "RTX A6000", GB: 48, Capacity: mib(47.40)},
		{Name: "H100", GB: 80, Capacity: mib(79.11)},
		{Name: "RTX PRO 6000", GB: 96, Capacity: mib(94.97)},
		{Name: "H200", GB: 141, Capacity: mib(139.72)},
		{Name: "B200", GB: 192, Capacity: mib(178.35)},
	}
	for i := range cards {
		cards[i].Usable = (cards[i].Capacity - atStart) / cuda.Granularity * cuda.Granularity
	}
	return cards
}

// mib returns so many GiB in bytes, in whole MiB.
func mib(gib float64) int64 { return int64(gib*1024) << 20 }
