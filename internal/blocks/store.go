package blocks

import (
	"gm/internal/cuda"
	"gm/internal/cuda/ptrmap"
)

// none is the index of no block.
const none int32 = -1

// index finds a block by its address.
type index = ptrmap.Map[int32]

func newIndex() index { return ptrmap.New[int32](10) }

// newSmallIndex returns an index that starts smaller, for types with many instances.
func newSmallIndex() index { return ptrmap.New[int32](4) }

// block is a range of addresses within a segment: handed out, free, or without memory.
type block struct {
	ptr     cuda.Ptr
	size    int64
	stream  cuda.Stream
	gcBase  int64 // the pool's search count when the block was last freed
	prev    int32 // neighbours in the segment, by address
	next    int32
	pool    int32 // index in the allocator's pools
	segment int32 // index of the expandable segment, none for others
	used    bool  // handed out, or freed but still used by another stream
	mapped  bool  // false for the parts of an expandable segment that have no memory
}

func (b *block) split() bool { return b.prev != none || b.next != none }

// store holds blocks by index, so that they are neither allocated one by one nor seen by the garbage collector.
type store struct {
	blocks []block
	unused []int32
}

func (s *store) at(i int32) *block { return &s.blocks[i] }

// add stores b. It invalidates the pointers that at returned.
func (s *store) add(b block) int32 {
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.blocks[i] = b
		return i
	}
	s.blocks = append(s.blocks, b)
	return int32(len(s.blocks) - 1)
}

func (s *store) remove(i int32) { s.unused = append(s.unused, i) }

// splitFront cuts the first size bytes off block i as a new block, which it returns; i keeps the rest.
func (s *store) splitFront(i int32, size int64) int32 {
	front := *s.at(i)
	front.size = size
	front.next = i
	f := s.add(front)
	rest := s.at(i)
	rest.ptr += cuda.Ptr(size)
	rest.size -= size
	rest.prev = f
	if front.prev != none {
		s.at(front.prev).next = f
	}
	return f
}

// insertAfter stores b as the block behind block i.
func (s *store) insertAfter(i int32, b block) int32 {
	b.prev, b.next = i, s.at(i).next
	n := s.add(b)
	s.at(i).next = n
	if b.next != none {
		s.at(b.next).prev = n
	}
	return n
}

// absorb merges neighbour j of block i into i.
func (s *store) absorb(i, j int32) {
	a, b := s.at(i), s.at(j)
	a.size += b.size
	if a.prev == j {
		a.ptr, a.prev = b.ptr, b.prev
		if a.prev != none {
			s.at(a.prev).next = i
		}
	} else {
		a.next = b.next
		if a.next != none {
			s.at(a.next).prev = i
		}
	}
	s.remove(j)
}
