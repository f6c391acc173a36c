package blocks

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// pagesModel is PyTorch's allocator with expandable segments in its plainest form: segments are lists of blocks in the order of their
// addresses, and everything is found by looking at all of them. Its own device only says where segments are.
type pagesModel struct {
	dev      *sim.Device
	segments []*pagedSegment
	capacity int64
	reserved int64
	retries  int64
}

type pagedSegment struct {
	base   cuda.Ptr
	size   int64
	page   int64
	small  bool
	stream cuda.Stream
	blocks []*pagedBlock
}

type pagedBlock struct {
	segment *pagedSegment
	ptr     cuda.Ptr
	size    int64
	used    bool
	mapped  bool
}

func (b *pagedBlock) free() bool { return b.mapped && !b.used }

// next returns the block behind b, nil if there is none.
func (b *pagedBlock) next() *pagedBlock {
	if i := slices.Index(b.segment.blocks, b) + 1; i < len(b.segment.blocks) {
		return b.segment.blocks[i]
	}
	return nil
}

// cut makes the block that holds [ptr, ptr+size) that alone, with what was around it as blocks like it, and returns it.
func (s *pagedSegment) cut(ptr cuda.Ptr, size int64) *pagedBlock {
	i := slices.IndexFunc(s.blocks, func(b *pagedBlock) bool { return b.ptr <= ptr && ptr < b.ptr+cuda.Ptr(b.size) })
	old := *s.blocks[i]
	var parts []*pagedBlock
	add := func(from, to cuda.Ptr) *pagedBlock {
		b := old
		b.ptr, b.size = from, int64(to-from)
		if b.size > 0 {
			parts = append(parts, &b)
		}
		return &b
	}
	add(old.ptr, ptr)
	b := add(ptr, ptr+cuda.Ptr(size))
	add(ptr+cuda.Ptr(size), old.ptr+cuda.Ptr(old.size))
	s.blocks = slices.Replace(s.blocks, i, i+1, parts...)
	return b
}

// join merges neighbours that are free, and those that have no memory.
func (s *pagedSegment) join() {
	var all []*pagedBlock
	for _, b := range s.blocks {
		if k := len(all) - 1; k >= 0 && !b.used && !all[k].used && b.mapped == all[k].mapped {
			all[k].size += b.size
			continue
		}
		all = append(all, b)
	}
	s.blocks = all
}

// lane returns the blocks of a lane for which a condition holds, by (size, address).
func (m *pagesModel) lane(small bool, stream cuda.Stream, is func(b *pagedBlock) bool) (all []*pagedBlock) {
	for _, s := range m.segments {
		for _, b := range s.blocks {
			if s.small == small && s.stream == stream && is(b) {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b *pagedBlock) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.ptr, b.ptr)) })
	return all
}

// malloc returns 0 if there is no room.
func (m *pagesModel) malloc(size int64, stream cuda.Stream) cuda.Ptr {
	size = max(roundUp(size, 512), 512)
	small := size <= 1<<20
	b := m.fit(size, small, stream)
	if b == nil {
		b = m.grow(size, small, stream)
	}
	if b == nil {
		m.empty()
		m.retries++
		b = m.grow(size, small, stream)
	}
	if b == nil {
		return 0
	}
	b = b.segment.cut(b.ptr, size)
	b.used = true
	return b.ptr
}

// fit returns the best fit, where a block before unmapped memory counts with the size to which it can grow. Of those in the order of their
// sizes the first is taken that is not followed by a smaller one.
func (m *pagesModel) fit(size int64, small bool, stream cuda.Stream) *pagedBlock {
	reach := func(b *pagedBlock) int64 {
		if next := b.next(); next != nil && !next.mapped {
			return b.size + next.size
		}
		return b.size
	}
	all := m.lane(small, stream, func(b *pagedBlock) bool { return b.free() && b.size >= size })
	for i, b := range all {
		if i+1 == len(all) || reach(all[i+1]) >= reach(b) {
			return b
		}
	}
	return nil
}

// grow maps pages: at the lowest unmapped memory that has room for the block with what is free before and behind it, else in a new segment.
func (m *pagesModel) grow(size int64, small bool, stream cuda.Stream) *pagedBlock {
	holes := m.lane(small, stream, func(b *pagedBlock) bool { return !b.mapped })
	slices.SortFunc(holes, func(a, b *pagedBlock) int { return cmp.Compare(a.ptr, b.ptr) })
	for _, hole := range holes {
		s := hole.segment
		i := slices.Index(s.blocks, hole)
		if i > 0 && s.blocks[i-1].free() {
			i--
		}
		room := int64(0)
		for _, b := range s.blocks[i:] {
			if b.used {
				break
			}
			room += b.size
		}
		if room >= size {
			return m.fill(s, s.blocks[i].ptr, size)
		}
	}
	s := &pagedSegment{page: 20 << 20, small: small, stream: stream}
	if small {
		s.page = 2 << 20
	}
	s.size = roundUp(max(m.capacity+m.capacity/8, size), s.page)
	var err error
	if s.base, err = m.dev.AddressReserve(s.size); err != nil {
		panic(err)
	}
	s.blocks = []*pagedBlock{{segment: s, ptr: s.base, size: s.size}}
	m.segments = append(m.segments, s)
	return m.fill(s, s.base, size)
}

// fill maps the pages that [ptr, ptr+size) lacks, the first first, and returns the free block there. It returns nil where the device is full:
// what was mapped before that, in other holes, stays.
func (m *pagesModel) fill(s *pagedSegment, ptr cuda.Ptr, size int64) *pagedBlock {
	for at := ptr; at < ptr+cuda.Ptr(size); {
		b := s.blocks[slices.IndexFunc(s.blocks, func(b *pagedBlock) bool { return b.ptr <= at && at < b.ptr+cuda.Ptr(b.size) })]
		if b.mapped {
			at = b.ptr + cuda.Ptr(b.size)
			continue
		}
		n := roundUp(min(b.size, size-int64(at-ptr)), s.page)
		if m.reserved+n > m.capacity {
			return nil
		}
		m.reserved += n
		s.cut(b.ptr, n).mapped = true
		s.join()
	}
	return s.blocks[slices.IndexFunc(s.blocks, func(b *pagedBlock) bool { return b.ptr == ptr })]
}

func (m *pagesModel) free(ptr cuda.Ptr) {
	for _, s := range m.segments {
		for _, b := range s.blocks {
			if b.used && b.ptr == ptr {
				b.used = false
				s.join()
				return
			}
		}
	}
	panic("free of an unknown address")
}

// empty unmaps the pages that are wholly free, and gives back the addresses of segments without any.
func (m *pagesModel) empty() {
	for _, small := range []bool{false, true} {
		for stream := range cuda.Stream(2) {
			for _, b := range m.lane(small, stream, (*pagedBlock).free) {
				s := b.segment
				first := roundUp(int64(b.ptr-s.base), s.page)
				end := (int64(b.ptr-s.base) + b.size) / s.page * s.page
				if first >= end {
					continue
				}
				s.cut(s.base+cuda.Ptr(first), end-first).mapped = false
				s.join()
				m.reserved -= end - first
				if len(s.blocks) > 1 {
					continue
				}
				if err := m.dev.AddressFree(s.base, s.size); err != nil {
					panic(err)
				}
				m.segments = slices.DeleteFunc(m.segments, func(x *pagedSegment) bool { return x == s })
			}
		}
	}
}

// TestExpandableAgainstModel makes the same random requests of expandable segments and of the model, on devices that become full.
func TestExpandableAgainstModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { expandableAgainstModel(t, rand.New(rand.NewPCG(seed, 41))) })
	}
}

func expandableAgainstModel(t *testing.T, rng *rand.Rand) {
	const capacity = 400 << 20
	conf := allocconf.Default()
	conf.Expandable = true
	dev := sim.New(capacity, sim.CostTable{})
	a, err := NewTorch(dev, conf)
	if err != nil {
		t.Fatal(err)
	}
	m := &pagesModel{dev: sim.New(capacity, sim.CostTable{}), capacity: capacity}
	sizes := [...]int64{
		1, 512, 3000, 400 << 10, 1 << 20, 1<<20 + 1, 2 << 20, 5 << 20, 10 << 20, 15 << 20, 20<<20 - 512, 20 << 20, 25 << 20, 40 << 20, 70 << 20,
	}
	var live []cuda.Ptr
	for step := range 1000 {
		switch x := rng.IntN(300); {
		case x == 0:
			if err := a.Empty(); err != nil {
				t.Fatal(err)
			}
			m.empty()
		case len(live) > 0 && (x < 145 || x < 270 && len(live) > 25):
			i := rng.IntN(len(live))
			if err := a.Free(live[i]); err != nil {
				t.Fatal(err)
			}
			m.free(live[i])
			live = slices.Delete(live, i, i+1)
		default:
			size, stream := sizes[rng.IntN(len(sizes))], cuda.Stream(rng.IntN(2))
			p, err := a.Malloc(size, stream, 0)
			if want := m.malloc(size, stream); p != want {
				t.Fatalf("step %d: %d bytes of stream %d at %#x (%v), the model has them at %#x", step, size, stream, p, err, want)
			}
			if p != 0 {
				live = append(live, p)
			}
		}
		if s := a.Stats(); s.Reserved != m.reserved || s.Retries != m.retries || dev.Used() != m.reserved {
			t.Fatalf("step %d: %+v, the model has taken %d bytes, with %d retries", step, s, m.reserved, m.retries)
		}
	}
	if m.retries < 10 {
		t.Errorf("the device was full %d times: the test is too easy", m.retries)
	}
}
