package objects

import (
	"math/bits"
	"slices"

	"gm/internal/cuda"
)

// Objects of at most half a tray lie in trays: blocks with slots of one size, a power of two. A tray moves as a whole.
const (
	tray    = cuda.Granularity
	minUnit = 512
)

// home returns a block on the card with a free slot for an object.
func (s *Store) home(size int64) (b *block, slot int, err error) {
	if size > tray/2 {
		whole := (size + cuda.Granularity - 1) / cuda.Granularity * cuda.Granularity
		if b, err = s.newBlock(whole, whole); err == nil {
			b.free--
		}
		return b, 0, err
	}
	unit := max(int64(1)<<bits.Len64(uint64(size-1)), minUnit)
	i := slices.IndexFunc(s.trays[unit], func(b *block) bool { return b.place == card && !b.busy })
	if i >= 0 {
		b = s.trays[unit][i]
	} else {
		if b, err = s.newBlock(tray, unit); err != nil {
			return nil, 0, err
		}
		s.trays[unit] = append(s.trays[unit], b)
	}
	slot = b.lowest + slices.Index(b.members[b.lowest:], 0)
	b.lowest = slot + 1
	if b.free--; b.free == 0 {
		s.forgetTray(b)
	}
	return b, slot, nil
}

// forgetTray takes a tray out of those with free slots.
func (s *Store) forgetTray(b *block) {
	if i := slices.Index(s.trays[b.unit], b); i >= 0 {
		s.trays[b.unit] = slices.Delete(s.trays[b.unit], i, i+1)
	}
}
