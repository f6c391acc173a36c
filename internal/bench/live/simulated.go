package live

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Simulated is a simulated device with contents: the words that were last set in each piece of physical memory. Work is done at once.
type Simulated struct {
	*sim.Device
	streams cuda.Stream // created so far
	fills   map[physical][]fill
}

// physical identifies memory wherever it is mapped: by a handle, or by what MemAlloc returned.
type physical struct {
	handle cuda.Handle
	base   cuda.Ptr
}

// fill is a range filled with one word, in bytes from the start of the physical memory.
type fill struct {
	start, end int64
	word       uint32
}

// NewSimulated returns a device of the largest size.
func NewSimulated() *Simulated {
	return &Simulated{Device: sim.New(0, sim.CostTable{}), fills: map[physical][]fill{}}
}

// StreamCreate implements GPU.
func (s *Simulated) StreamCreate() (cuda.Stream, error) {
	s.streams++
	return s.streams, nil
}

// StreamDestroy implements GPU.
func (s *Simulated) StreamDestroy(cuda.Stream) error { return nil }

// Synchronize implements GPU.
func (s *Simulated) Synchronize() error { return nil }

// MemFree implements cuda.Device.
func (s *Simulated) MemFree(p cuda.Ptr) error {
	delete(s.fills, physical{base: p})
	return s.Device.MemFree(p)
}

// MemsetD32Async implements GPU.
func (s *Simulated) MemsetD32Async(p cuda.Ptr, value uint32, words int64, _ cuda.Stream) error {
	extents, err := s.Extents(p, 4*words)
	if err != nil {
		return fmt.Errorf("cuMemsetD32Async: %w", err)
	}
	for _, e := range extents {
		at := physical{e.Handle, e.Base}
		s.fills[at] = overwrite(s.fills[at], fill{e.Offset, e.Offset + e.Size, value})
	}
	return nil
}

// overwrite puts f among fills, which are in order and do not overlap.
func overwrite(fills []fill, f fill) []fill {
	first := sort.Search(len(fills), func(i int) bool { return fills[i].end > f.start })
	after := sort.Search(len(fills), func(i int) bool { return fills[i].start >= f.end })
	with := []fill{f}
	if first < after {
		if left := fills[first]; left.start < f.start {
			with = []fill{{left.start, f.start, left.word}, f}
		}
		if right := fills[after-1]; right.end > f.end {
			with = append(with, fill{f.end, right.end, right.word})
		}
	}
	return slices.Replace(fills, first, after, with...)
}

// MemcpyDtoH implements GPU, for whole words.
func (s *Simulated) MemcpyDtoH(dst []byte, src cuda.Ptr) error {
	for i := 0; i < len(dst); i += 4 {
		extents, err := s.Extents(src+cuda.Ptr(i), 4)
		if err != nil {
			return fmt.Errorf("cuMemcpyDtoH: %w", err)
		}
		binary.LittleEndian.PutUint32(dst[i:], s.word(extents[0]))
	}
	return nil
}

// word returns the word at an extent, 0 where nothing was set.
func (s *Simulated) word(e sim.Extent) uint32 {
	fills := s.fills[physical{e.Handle, e.Base}]
	i := sort.Search(len(fills), func(i int) bool { return fills[i].end > e.Offset })
	if i == len(fills) || fills[i].start > e.Offset {
		return 0
	}
	return fills[i].word
}
