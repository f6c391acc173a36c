package blocks

import "gm/internal/cuda"

// free is a block in a freeSet. Its key is (size, ptr).
type free struct {
	size int64
	ptr  cuda.Ptr
	id   int32
}

func (f free) less(size int64, ptr cuda.Ptr) bool {
	return f.size < size || f.size == size && f.ptr < ptr
}

// chunkRows is the most that a chunk holds: 128 rows of 24 bytes, so that inserting moves 3 KB at the most.
const chunkRows = 128

// freeSet is an ordered set of blocks by (size, ptr): a sorted list cut into sorted chunks. A search is binary, first among the last rows
// of the chunks, then within the chunk. With the thousands of free blocks of an allocator it touches a few cache lines. Once the chunks
// exist, the set allocates nothing.
type freeSet struct {
	chunks [][]free
	spare  [][]free
}

// spot is a place in a freeSet, valid until the set changes.
type spot struct{ chunk, row int }

// seek returns the first spot whose key is not less than (size, ptr).
func (s *freeSet) seek(size int64, ptr cuda.Ptr) spot {
	lo, hi := 0, len(s.chunks)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if c := s.chunks[mid]; c[len(c)-1].less(size, ptr) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(s.chunks) {
		return spot{lo, 0}
	}
	c := s.chunks[lo]
	row, end := 0, len(c)
	for row < end {
		mid := int(uint(row+end) >> 1)
		if c[mid].less(size, ptr) {
			row = mid + 1
		} else {
			end = mid
		}
	}
	return spot{lo, row}
}

func (s *freeSet) empty() bool { return len(s.chunks) == 0 }

func (s *freeSet) valid(at spot) bool { return at.chunk >= 0 && at.chunk < len(s.chunks) }

func (s *freeSet) at(at spot) free { return s.chunks[at.chunk][at.row] }

// set replaces what is at a spot by a block that has the same place in the order.
func (s *freeSet) set(at spot, f free) { s.chunks[at.chunk][at.row] = f }

func (s *freeSet) first() spot { return spot{} }

func (s *freeSet) next(at spot) spot {
	if at.row+1 < len(s.chunks[at.chunk]) {
		return spot{at.chunk, at.row + 1}
	}
	return spot{at.chunk + 1, 0}
}

// before returns the spot before at, one that is not valid when there is none.
func (s *freeSet) before(at spot) spot {
	if at.row > 0 {
		return spot{at.chunk, at.row - 1}
	}
	if at.chunk == 0 {
		return spot{-1, 0}
	}
	return spot{at.chunk - 1, len(s.chunks[at.chunk-1]) - 1}
}

func (s *freeSet) insert(f free) { s.insertAt(s.seek(f.size, f.ptr), f) }

// insertAt inserts f before what is at a spot, where the order wants it.
func (s *freeSet) insertAt(at spot, f free) {
	if at.chunk == len(s.chunks) {
		if at.chunk == 0 {
			s.insertChunk(0)
		} else {
			at = spot{at.chunk - 1, len(s.chunks[at.chunk-1])}
		}
	}
	if len(s.chunks[at.chunk]) == chunkRows {
		at = s.divide(at)
	}
	c := s.chunks[at.chunk]
	c = c[:len(c)+1]
	copy(c[at.row+1:], c[at.row:])
	c[at.row] = f
	s.chunks[at.chunk] = c
}

// rekey replaces the block with this key, which must be there, by f. Within a chunk only the rows between the two places move.
func (s *freeSet) rekey(size int64, ptr cuda.Ptr, f free) {
	from, to := s.find(size, ptr), s.seek(f.size, f.ptr)
	if from.chunk != to.chunk {
		s.take(from)
		s.insert(f)
		return
	}
	c := s.chunks[from.chunk]
	if to.row > from.row {
		to.row--
		copy(c[from.row:to.row], c[from.row+1:])
	} else {
		copy(c[to.row+1:from.row+1], c[to.row:])
	}
	c[to.row] = f
}

// divide cuts a full chunk in two and returns where at is now.
func (s *freeSet) divide(at spot) spot {
	s.insertChunk(at.chunk + 1)
	const half = chunkRows / 2
	left, right := s.chunks[at.chunk], s.chunks[at.chunk+1]
	s.chunks[at.chunk+1] = append(right, left[half:]...)
	s.chunks[at.chunk] = left[:half]
	if at.row > half {
		return spot{at.chunk + 1, at.row - half}
	}
	return at
}

func (s *freeSet) insertChunk(i int) {
	var c []free
	if n := len(s.spare); n > 0 {
		c, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		c = make([]free, 0, chunkRows)
	}
	s.chunks = append(s.chunks, nil)
	copy(s.chunks[i+1:], s.chunks[i:])
	s.chunks[i] = c
}

// onward returns the spot of what followed the row that was just taken from at.
func (s *freeSet) onward(at spot) spot {
	if s.valid(at) && at.row == len(s.chunks[at.chunk]) {
		return spot{at.chunk + 1, 0}
	}
	return at
}

// take removes and returns what is at a spot.
func (s *freeSet) take(at spot) free {
	c := s.chunks[at.chunk]
	f := c[at.row]
	copy(c[at.row:], c[at.row+1:])
	c = c[:len(c)-1]
	s.chunks[at.chunk] = c
	if len(c) == 0 {
		s.spare = append(s.spare, c)
		s.chunks = append(s.chunks[:at.chunk], s.chunks[at.chunk+1:]...)
	}
	return f
}

// remove takes out the block with this key, which must be there.
func (s *freeSet) remove(size int64, ptr cuda.Ptr) { s.take(s.find(size, ptr)) }

// find returns the spot of the block with this key, which must be there.
func (s *freeSet) find(size int64, ptr cuda.Ptr) spot {
	at := s.seek(size, ptr)
	if !s.valid(at) || s.at(at).ptr != ptr || s.at(at).size != size {
		panic("BUG: block is not in the free set")
	}
	return at
}
