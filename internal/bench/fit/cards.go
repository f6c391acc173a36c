package fit

import (
	"strings"

	"gm/internal/cuda"
	"gm/internal/cuda/cards"
)

// Card is a GPU that programs are tried on.
type Card struct {
	Name     string `json:"name"`
	GB       int    `json:"gb"`             // as sold
	Capacity int64  `json:"capacity_bytes"` // as CUDA reports it
	Usable   int64  `json:"usable_bytes"`   // the part of it for the tensors of a process
}

// Short returns the name from its number on, such as 2080 Ti.
func (c Card) Short() string {
	return c.Name[strings.LastIndexByte(c.Name[:strings.IndexAny(c.Name, "0123456789")], ' ')+1:]
}

// Left returns what a card has for tensors if a process takes so many bytes of it beside them.
func (c Card) Left(outside int64) int64 {
	return max(c.Capacity-outside, 0) / cuda.Granularity * cuda.Granularity
}

// atStart is what a process takes of a card before its first tensor, in bytes: the CUDA context and the kernels that are loaded. With
// PyTorch it is about 0.5 GiB, with many libraries more.
const atStart = 512 << 20

// Cards returns the cards whose capacity is known, the smallest first.
func Cards() []Card { return CardsBeside(0) }

// CardsBeside returns the cards as a process finds them that takes so many bytes beside its tensors, if that is more than any process takes.
func CardsBeside(outside int64) []Card {
	var all []Card
	for _, c := range cards.All() {
		if c.Capacity > 0 {
			card := Card{Name: c.Name, GB: c.GB, Capacity: c.Capacity}
			card.Usable = card.Left(max(outside, atStart))
			all = append(all, card)
		}
	}
	return all
}
