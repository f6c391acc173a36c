package live

import (
	"encoding/binary"
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/cuda"
)

// Check is how much of the written data is read back.
type Check int

// The checks. With any but CheckNothing, all of every tensor is written.
const (
	CheckNothing Check = iota
	CheckSample        // of at least 2048 tensors, if the program has them
	CheckAll           // of every tensor
)

const (
	sampleTensors = 2048
	insideWords   = 4  // read of a tensor besides its ends
	boundaries    = 16 // at most, of pieces of memory in a tensor; the words on both sides are read
	maxMismatches = 8  // that are kept
	wordBytes     = 4
)

// The purposes of random numbers.
const (
	drawSampled = iota
	drawInside
	drawPattern
)

// Checked counts what was read back.
type Checked struct {
	Tensors    int64
	Words      int64
	Wrong      int64 // tensors
	Mismatches []Mismatch
}

// Mismatch is a tensor that did not hold what was written.
type Mismatch struct {
	Tensor   int32 // from 0, in the order of their allocs
	Row      int64 // of its alloc
	Size     int64 // bytes as requested
	Addr     cuda.Ptr
	Offset   int64 // of the first wrong word that was read, in bytes
	Expected uint32
	Found    uint32
	Writer   int32 // the tensor whose word was found, -1 if it is that of none
}

// Error implements error.
func (m *Mismatch) Error() string {
	text := fmt.Sprintf("tensor %d of row %d, %d bytes at %#x: 0x%08x written, 0x%08x found at byte %d",
		m.Tensor, m.Row, m.Size, uint64(m.Addr), m.Expected, m.Found, m.Offset)
	if m.Writer != noTensor {
		text += fmt.Sprintf(", which tensor %d wrote", m.Writer)
	}
	return text
}

// contents fills each tensor with a word of its own, and reads it back at some places.
type contents struct {
	gpu   GPU
	p     *replay.Program
	seed  uint64
	every uint64 // one of this many tensors is read back
	rows  []int32
	Checked
}

func newContents(gpu GPU, p *replay.Program, check Check, seed uint64) *contents {
	c := &contents{gpu: gpu, p: p, seed: seed, every: 1, rows: make([]int32, len(p.Sizes))}
	if check == CheckSample {
		c.every = uint64(max(1, len(p.Sizes)/sampleTensors))
	}
	for step, kind := range p.Kinds {
		if kind == replay.Alloc {
			c.rows[p.Tensors[step]] = p.Rows[step]
		}
	}
	return c
}

// draw returns a pseudo-random number, the same for the same tensor and purpose (splitmix64).
func (c *contents) draw(tensor int32, purpose, n uint64) uint64 {
	x := c.seed + 0x9e3779b97f4a7c15*(uint64(tensor)<<16|purpose<<8|n+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *contents) pattern(tensor int32) uint32 { return uint32(c.draw(tensor, drawPattern, 0)) }

// words returns the whole words of a tensor at p.
func (c *contents) words(tensor int32, p cuda.Ptr) (first cuda.Ptr, n int64) {
	first = (p + wordBytes - 1) &^ (wordBytes - 1)
	return first, max(0, (c.p.Sizes[tensor]-int64(first-p))/wordBytes)
}

// write fills a tensor at p, in a stream.
func (c *contents) write(tensor int32, p cuda.Ptr, in cuda.Stream) error {
	first, n := c.words(tensor, p)
	if n == 0 {
		return nil
	}
	if err := c.gpu.MemsetD32Async(first, c.pattern(tensor), n, in); err != nil {
		return fmt.Errorf("write %d bytes: %w", n*wordBytes, err)
	}
	return nil
}

// verify reads back places of a tensor at p, if the tensor is sampled, after the work of its stream.
func (c *contents) verify(tensor int32, p cuda.Ptr, in cuda.Stream) error {
	first, n := c.words(tensor, p)
	if n == 0 || c.draw(tensor, drawSampled, 0)%c.every != 0 {
		return nil
	}
	if err := c.gpu.StreamSynchronize(in); err != nil {
		return fmt.Errorf("wait for a stream: %w", err)
	}
	c.Tensors++
	var word [wordBytes]byte
	for _, at := range c.places(tensor, first, n) {
		if err := c.gpu.MemcpyDtoH(word[:], at); err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		c.Words++
		if found := binary.LittleEndian.Uint32(word[:]); found != c.pattern(tensor) {
			c.mismatch(tensor, p, at, found)
			break
		}
	}
	return nil
}

// places returns the addresses to read of n words: both ends, some in between, and both sides of where pieces of memory may meet.
func (c *contents) places(tensor int32, first cuda.Ptr, n int64) []cuda.Ptr {
	last := first + cuda.Ptr(n-1)*wordBytes
	all := []cuda.Ptr{first, last}
	for i := range uint64(insideWords) {
		all = append(all, first+cuda.Ptr(c.draw(tensor, drawInside, i)%uint64(n))*wordBytes)
	}
	start := (first + cuda.Granularity) &^ (cuda.Granularity - 1)
	if last < start {
		return all
	}
	pieces := int64(last-start)/cuda.Granularity + 1
	for i := range min(pieces, boundaries) {
		at := start + cuda.Ptr(i*pieces/min(pieces, boundaries))*cuda.Granularity
		all = append(all, at-wordBytes, at)
	}
	return all
}

func (c *contents) mismatch(tensor int32, p, at cuda.Ptr, found uint32) {
	if c.Wrong++; c.Wrong > maxMismatches {
		return
	}
	m := Mismatch{
		Tensor: tensor, Row: int64(c.rows[tensor]), Size: c.p.Sizes[tensor], Addr: p, Offset: int64(at - p),
		Expected: c.pattern(tensor), Found: found, Writer: noTensor,
	}
	for other := range int32(len(c.p.Sizes)) {
		if c.pattern(other) == found {
			m.Writer = other
			break
		}
	}
	c.Mismatches = append(c.Mismatches, m)
}
