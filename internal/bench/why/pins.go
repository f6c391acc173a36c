package why

import (
	"cmp"
	"slices"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
)

// maxPins is the most segments that are listed.
const maxPins = 10

// pinning is a pinned segment and the oldest tensor in it.
type pinning struct {
	holding *blocks.Holding
	tensor  int32
}

// pins returns the holdings in use with the most free bytes.
func (m *moment) pins(holdings []blocks.Holding) []pinning {
	var all []pinning
	for i := range holdings {
		if h := &holdings[i]; len(h.Uses) > 0 && h.Free() > 0 && !h.Planned {
			all = append(all, pinning{holding: h})
		}
	}
	slices.SortFunc(all, func(a, b pinning) int {
		return cmp.Or(cmp.Compare(b.holding.Free(), a.holding.Free()), cmp.Compare(a.holding.Address, b.holding.Address))
	})
	all = all[:min(len(all), maxPins)]
	for i := range all {
		all[i].tensor = m.oldest(all[i].holding)
	}
	return all
}

// oldest returns the tensor in a holding that was allocated first. Tensors are numbered in that order.
func (m *moment) oldest(h *blocks.Holding) int32 {
	t := m.blocks[h.Uses[0].Block].tensor
	for _, u := range h.Uses[1:] {
		t = min(t, m.blocks[u.Block].tensor)
	}
	return t
}

// addStacks fills in the pins of all accounts, with the stacks of their blocks.
func addStacks(p *replay.Program, accounts []*Account) error {
	steps := map[int32]int{} // of allocation, by tensor
	for _, a := range accounts {
		for _, pin := range a.pinning {
			steps[pin.tensor] = 0
		}
	}
	for i, kind := range p.Kinds {
		if _, wanted := steps[p.Tensors[i]]; wanted && kind == replay.Alloc {
			steps[p.Tensors[i]] = i
		}
	}
	var rows []int64
	for _, step := range steps {
		rows = append(rows, int64(p.Rows[step]))
	}
	stacks, err := p.Stacks(rows)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		a.Pins = []Pin{}
		for _, pin := range a.pinning {
			step := steps[pin.tensor]
			h := pin.holding
			a.Pins = append(a.Pins, Pin{
				Segment: int64(h.Address), Reserved: h.Size, Live: h.Size - h.Free(), Blocks: len(h.Uses), Block: p.Sizes[pin.tensor],
				Stack: stacks[int64(p.Rows[step])], AgeNS: a.TimeNS - p.TimesNS[step], Stream: int64(h.Stream),
			})
		}
		a.pinning = nil
	}
	return nil
}
