package exporter

import "slices"

// segment is memory that the allocator reserves. An expandable segment is split into its contiguously mapped ranges.
type segment struct {
	addr, size uint64
	stream     int64
	pool       int32
	stack      int32
	expandable bool
	blocks     []*block // live, by address
}

// The sizes of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp), in bytes: of segments for small blocks and of their pages if
// expandable; of the pages of expandable segments for large blocks; and of the largest remainder that is not split off a large block.
const (
	smallSegment = 2 << 20
	largePage    = 20 << 20
	unsplit      = 1 << 20
)

// small reports whether a segment is for small blocks.
func (s *segment) small() bool {
	if s.expandable {
		return s.size%largePage != 0
	}
	return s.size <= smallSegment
}

// insert adds a block; false if it does not fit. Unless its size is exact, the block includes a remainder that PyTorch would not have
// split off.
func (s *segment) insert(b *block, exact bool) bool {
	i, found := slices.BinarySearchFunc(s.blocks, b.addr, blockAt)
	if found || i > 0 && s.blocks[i-1].addr+s.blocks[i-1].whole > b.addr {
		return false
	}
	end := s.addr + s.size
	if i < len(s.blocks) {
		end = s.blocks[i].addr
	}
	room := end - b.addr
	if uint64(b.size) > room {
		return false
	}
	b.whole = min(b.whole, room)
	if !exact && !s.small() && !s.expandable && room-b.whole <= unsplit {
		b.whole = room
	}
	s.blocks = slices.Insert(s.blocks, i, b)
	return true
}

// part returns the part of a segment between two addresses.
func (s *segment) part(from, to uint64) *segment {
	p := *s
	p.addr, p.size = from, to-from
	p.blocks = nil
	for _, b := range s.blocks {
		if b.addr >= from && b.addr+b.whole <= to {
			p.blocks = append(p.blocks, b)
		}
	}
	return &p
}

// piece is a part of a segment, in use or not.
type piece struct {
	addr, size uint64
	block      *block // nil if it is free
}

// pieces divides a segment into pieces without gaps.
func (s *segment) pieces() []piece {
	var all []piece
	next := s.addr
	for _, b := range s.blocks {
		if b.addr > next {
			all = append(all, piece{next, b.addr - next, nil})
		}
		all = append(all, piece{b.addr, b.whole, b})
		next = b.addr + b.whole
	}
	if end := s.addr + s.size; next < end {
		all = append(all, piece{next, end - next, nil})
	}
	return all
}
