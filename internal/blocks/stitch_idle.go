package blocks

import (
	"math/bits"

	"gm/internal/cuda"
)

// idleSet is the pieces of a heap that are wholly free, ordered by (size, number). A piece becomes idle, and is taken, far more often than
// one is looked for, so either is the change of a bit. There are at most some dozens of sizes.
type idleSet struct {
	sizes  []idleSize // by multiples of cuda.Granularity, from one
	pieces int
}

// idleSize is the idle pieces of one size.
type idleSize struct {
	numbers []uint64 // a bit for each number
	pieces  int
}

func (s *idleSet) empty() bool { return s.pieces == 0 }

// bytes returns how many bytes the pieces have.
func (s *idleSet) bytes() (n int64) {
	for i := range s.sizes {
		n += int64(s.sizes[i].pieces) * int64(i+1) * cuda.Granularity
	}
	return n
}

func (s *idleSet) add(size int64, number int32) {
	i := int(size/cuda.Granularity) - 1
	for len(s.sizes) <= i {
		s.sizes = append(s.sizes, idleSize{})
	}
	one := &s.sizes[i]
	for len(one.numbers) <= int(number/64) {
		one.numbers = append(one.numbers, 0)
	}
	one.numbers[number/64] |= 1 << (number % 64)
	one.pieces++
	s.pieces++
}

// remove takes out a piece, which must be there.
func (s *idleSet) remove(size int64, number int32) {
	one := &s.sizes[size/cuda.Granularity-1]
	if one.numbers[number/64]>>(number%64)&1 == 0 {
		panic("BUG: piece is not idle")
	}
	one.numbers[number/64] &^= 1 << (number % 64)
	one.pieces--
	s.pieces--
}

// from returns the first piece from (size, number) on, none if there is none.
func (s *idleSet) from(size int64, number int32) int32 {
	for i := int((size+cuda.Granularity-1)/cuda.Granularity) - 1; i < len(s.sizes); i++ {
		if one := &s.sizes[i]; one.pieces > 0 {
			if found := one.from(number); found != none {
				return found
			}
		}
		number = 0
	}
	return none
}

// before returns the last piece before (size, number), none if there is none.
func (s *idleSet) before(size int64, number int32) int32 {
	for i := int((size+cuda.Granularity-1)/cuda.Granularity) - 1; i >= 0; i-- {
		if i < len(s.sizes) && s.sizes[i].pieces > 0 {
			if found := s.sizes[i].before(number); found != none {
				return found
			}
		}
		number = 1<<31 - 1
	}
	return none
}

// last returns the last piece, none if there is none.
func (s *idleSet) last() int32 { return s.before(int64(len(s.sizes)+1)*cuda.Granularity, 0) }

// from returns the first number from number on.
func (one *idleSize) from(number int32) int32 {
	for word, low := int(number/64), number%64; word < len(one.numbers); word, low = word+1, 0 {
		if left := one.numbers[word] >> low; left != 0 {
			return int32(64*word) + low + int32(bits.TrailingZeros64(left))
		}
	}
	return none
}

// before returns the last number before number.
func (one *idleSize) before(number int32) int32 {
	for word := min(int(number/64), len(one.numbers)-1); word >= 0; word-- {
		left := one.numbers[word]
		if word == int(number/64) {
			left &= 1<<(number%64) - 1
		}
		if left != 0 {
			return int32(64*word+bits.Len64(left)) - 1
		}
	}
	return none
}
