package why

import (
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// moment is what a program holds right after a step.
type moment struct {
	p      *replay.Program
	step   int
	newest int32                 // the tensor for which memory was taken at that step, -1 for none
	stream cuda.Stream           // of the last request
	blocks map[cuda.Ptr]*liveOne // by address
	parts  parts
}

// liveOne is a tensor that is held.
type liveOne struct {
	tensor int32
	taken  int64 // bytes of its block
	round  int64 // least bytes that its request takes
}

func newMoment(p *replay.Program, peak replay.Peak, live map[int32]cuda.Ptr) *moment {
	m := &moment{p: p, step: peak.Step, newest: -1, blocks: map[cuda.Ptr]*liveOne{}}
	if peak.Grew {
		m.newest = p.Tensors[peak.Step]
	}
	for t, at := range live {
		m.blocks[at] = &liveOne{tensor: t}
	}
	for i := peak.Step; i >= 0; i-- {
		if p.Kinds[i] == replay.Alloc {
			m.stream = p.Streams[p.Tensors[i]]
			break
		}
	}
	return m
}

// account assigns all memory that is held to parts.
func (m *moment) account(holdings []blocks.Holding) (*Account, error) {
	a := &Account{
		Device: m.p.Device, TimeNS: m.p.TimesNS[m.step], Row: int64(m.p.Rows[m.step]), Stream: int64(m.stream),
	}
	for i := range holdings {
		h := &holdings[i]
		for _, u := range h.Uses {
			b := m.blocks[u.Block]
			if b == nil {
				return nil, fmt.Errorf("BUG: a block at %#x belongs to no tensor", u.Block)
			}
			b.taken += u.Bytes
			b.round = h.Round(m.p.Sizes[b.tensor])
		}
	}
	for i := range holdings {
		h := &holdings[i]
		a.Reserved += h.Size
		m.parts[pending] += h.Pending
		m.sort(h)
	}
	for _, b := range m.blocks {
		size := m.p.Sizes[b.tensor]
		a.Requested += size
		least := min(b.round, b.taken)
		m.parts[rounding] += least - size
		m.parts[tails] += b.taken - least
	}
	a.Parts = m.parts.list()
	a.pinning = m.pins(holdings)
	return a, nil
}

// sort adds the free bytes of a holding to the parts by which they are lost.
func (m *moment) sort(h *blocks.Holding) {
	free := h.Free()
	unused := h.Growth
	if m.fresh(h) {
		unused = free
	}
	switch {
	case h.Planned:
		m.parts[gaps] += free
	case h.Pool != 0:
		m.parts[private] += free
	case h.Stream != m.stream:
		m.parts[stranded] += free
	case free == h.Size:
		m.parts[whole] += free
	case h.Small:
		m.parts[growth] += unused
		m.parts[small] += free - unused
	default:
		m.parts[growth] += unused
		m.parts[large] += free - unused
	}
}

// fresh reports whether a holding was taken for the request of the moment: it contains all of that block, and nothing else.
func (m *moment) fresh(h *blocks.Holding) bool {
	if len(h.Uses) != 1 || h.Pending > 0 {
		return false
	}
	b := m.blocks[h.Uses[0].Block]
	return b.tensor == m.newest && b.taken == h.Uses[0].Bytes
}
