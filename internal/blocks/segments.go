package blocks

import (
	"slices"

	"gm/internal/cuda"
)

// BlockState is the state of a block.
type BlockState uint8

// The states of a block. String returns PyTorch's names.
const (
	BlockFree    BlockState = iota
	BlockUsed               // handed out
	BlockPending            // freed, but other streams still use it
)

// String implements fmt.Stringer.
func (s BlockState) String() string {
	return [...]string{"inactive", "active_allocated", "active_pending_free"}[s]
}

// BlockView is a block as a snapshot shows it.
type BlockView struct {
	Address cuda.Ptr
	Size    int64 // bytes
	State   BlockState
}

// SegmentView is a range of addresses with memory as a snapshot shows it. Blocks cover it, ordered by address.
type SegmentView struct {
	Address    cuda.Ptr
	Size       int64 // bytes
	Stream     cuda.Stream
	Pool       Pool
	Small      bool // of the pool for small requests
	Expandable bool // made of pages that can be unmapped one by one
	Blocks     []BlockView
}

// Segments returns the segments ordered by address. A mapped stretch of an expandable segment counts as one.
func (t *Torch) Segments() []SegmentView {
	pools := make([]Pool, len(t.pools))
	for pool, i := range t.pairs {
		pools[i], pools[i+1] = pool, pool
	}
	var segments []SegmentView
	for _, head := range t.store.heads() {
		segments = t.appendSegments(segments, head, pools)
	}
	slices.SortFunc(segments, func(a, b SegmentView) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return segments
}

// heads returns the first block of each row of neighbours.
func (s *store) heads() []int32 {
	unused := make(map[int32]bool, len(s.unused))
	for _, id := range s.unused {
		unused[id] = true
	}
	var heads []int32
	for id := range int32(len(s.blocks)) {
		if !unused[id] && s.at(id).prev == none {
			heads = append(heads, id)
		}
	}
	return heads
}

// appendSegments adds the mapped stretches of a row of neighbours.
func (t *Torch) appendSegments(to []SegmentView, head int32, pools []Pool) []SegmentView {
	open := false
	for id := head; id != none; id = t.store.at(id).next {
		b := t.store.at(id)
		if !b.mapped {
			open = false
			continue
		}
		if !open {
			open = true
			to = append(to, SegmentView{
				Address: b.ptr, Stream: b.stream, Pool: pools[b.pool], Small: t.pools[b.pool].small, Expandable: b.segment != none,
			})
		}
		s := &to[len(to)-1]
		s.Size += b.size
		s.Blocks = append(s.Blocks, BlockView{Address: b.ptr, Size: b.size, State: t.state(b)})
	}
	return to
}

func (t *Torch) state(b *block) BlockState {
	if !b.used {
		return BlockFree
	}
	if _, ok := t.index.Get(b.ptr); ok {
		return BlockUsed
	}
	return BlockPending
}

// Holdings implements Allocator: the segments.
func (t *Torch) Holdings() []Holding {
	var all []Holding
	for _, s := range t.Segments() {
		h := Holding{Address: s.Address, Size: s.Size, Stream: s.Stream, Pool: s.Pool, Small: s.Small, Round: t.conf.RoundSize}
		for _, b := range s.Blocks {
			switch b.State {
			case BlockUsed:
				h.Uses = append(h.Uses, Use{b.Address, b.Size})
			case BlockPending:
				h.Pending += b.Size
			}
		}
		if last := s.Blocks[len(s.Blocks)-1]; s.Expandable && last.State == BlockFree {
			h.Growth = last.Size
		}
		all = append(all, h)
	}
	return all
}
