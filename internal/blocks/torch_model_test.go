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

// torchModel is PyTorch's allocator without expandable segments, written for reading: every search goes through all blocks. Its rules are
// those of c10/cuda/CUDACachingAllocator.cpp: get_free_block, should_split, garbage_collect_cached_blocks,
// release_available_cached_blocks and release_cached_blocks.
type torchModel struct {
	dev      *sim.Device
	maxSplit int64 // 0 is none
	rounding int64 // most bytes that a block above maxSplit may exceed its request by
	gc       float64
	limit    int64 // 0 is none
	reserved int64
	retries  int64
	searches map[bool]int64 // by pool, true for the small one
	segments []*modelSegment
}

type modelSegment struct {
	stream cuda.Stream
	small  bool
	blocks []*modelBlock // by address
}

type modelBlock struct {
	segment *modelSegment
	ptr     cuda.Ptr
	size    int64
	used    bool
	since   int64 // searches of its pool when it became free
}

func (b *modelBlock) whole() bool { return len(b.segment.blocks) == 1 }

// cached returns the free blocks of a pool in PyTorch's order.
func (m *torchModel) cached(small bool) (all []*modelBlock) {
	for _, s := range m.segments {
		for _, b := range s.blocks {
			if s.small == small && !b.used {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b *modelBlock) int {
		return cmp.Or(cmp.Compare(a.segment.stream, b.segment.stream), cmp.Compare(a.size, b.size), cmp.Compare(a.ptr, b.ptr))
	})
	return all
}

func (m *torchModel) lane(small bool, stream cuda.Stream) []*modelBlock {
	return slices.DeleteFunc(m.cached(small), func(b *modelBlock) bool { return b.segment.stream != stream })
}

func (m *torchModel) release(b *modelBlock) {
	if err := m.dev.MemFree(b.ptr); err != nil {
		panic(err)
	}
	m.reserved -= b.size
	m.segments = slices.DeleteFunc(m.segments, func(s *modelSegment) bool { return s == b.segment })
}

// malloc returns 0 when the device is full.
func (m *torchModel) malloc(size int64, stream cuda.Stream) cuda.Ptr {
	size = (size + 511) / 512 * 512
	small := size <= 1<<20
	if b := m.fit(size, small, stream); b != nil {
		return m.handOut(b, size)
	}
	m.collect()
	b := m.segment(size, small, stream)
	if b == nil && m.maxSplit > 0 && m.releaseAvailable(size, small, stream) {
		b = m.segment(size, small, stream)
	}
	if b == nil {
		m.releaseAll()
		m.retries++
		b = m.segment(size, small, stream)
	}
	if b == nil {
		return 0
	}
	return m.handOut(b, size)
}

func (m *torchModel) fit(size int64, small bool, stream cuda.Stream) *modelBlock {
	m.searches[small]++
	for _, b := range m.lane(small, stream) {
		switch {
		case b.size < size:
			continue
		case m.maxSplit > 0 && size < m.maxSplit && b.size >= m.maxSplit:
			return nil
		case m.maxSplit > 0 && size >= m.maxSplit && b.size >= size+m.rounding:
			return nil
		}
		return b
	}
	return nil
}

func (m *torchModel) segment(size int64, small bool, stream cuda.Stream) *modelBlock {
	n := (size + 2<<20 - 1) / (2 << 20) * (2 << 20)
	if small {
		n = 2 << 20
	} else if size < 10<<20 {
		n = 20 << 20
	}
	if m.limit > 0 && m.reserved+n > m.limit {
		return nil
	}
	p, err := m.dev.MemAlloc(n)
	if err != nil {
		return nil
	}
	m.reserved += n
	s := &modelSegment{stream: stream, small: small}
	s.blocks = []*modelBlock{{segment: s, ptr: p, size: n}}
	m.segments = append(m.segments, s)
	return s.blocks[0]
}

func (m *torchModel) handOut(b *modelBlock, size int64) cuda.Ptr {
	b.used = true
	rest := b.size - size
	if s := b.segment; s.small && rest >= 512 || !s.small && rest > 1<<20 && (m.maxSplit == 0 || size < m.maxSplit) {
		b.size = size
		tail := &modelBlock{segment: s, ptr: b.ptr + cuda.Ptr(size), size: rest, since: m.searches[s.small]}
		s.blocks = slices.Insert(s.blocks, slices.Index(s.blocks, b)+1, tail)
	}
	return b.ptr
}

func (m *torchModel) free(p cuda.Ptr) {
	for _, s := range m.segments {
		i := slices.IndexFunc(s.blocks, func(b *modelBlock) bool { return b.used && b.ptr == p })
		if i < 0 {
			continue
		}
		from, to := i, i+1
		if i > 0 && !s.blocks[i-1].used {
			from--
		}
		if to < len(s.blocks) && !s.blocks[to].used {
			to++
		}
		joined := &modelBlock{segment: s, ptr: s.blocks[from].ptr, since: m.searches[s.small]}
		for _, b := range s.blocks[from:to] {
			joined.size += b.size
		}
		s.blocks = slices.Replace(s.blocks, from, to, joined)
		return
	}
	panic("free of an unknown address")
}

// collect releases the whole large blocks that are at least as old as the average, until the threshold is met or there is none.
func (m *torchModel) collect() {
	if m.gc == 0 {
		return
	}
	target := m.reserved - int64(m.gc*float64(m.limit))
	for freed := true; freed && target > 0; {
		whole := slices.DeleteFunc(m.cached(false), func(b *modelBlock) bool { return !b.whole() })
		sum := int64(0)
		for _, b := range whole {
			sum += m.searches[false] - b.since
		}
		freed = false
		for _, b := range whole {
			if (m.searches[false]-b.since)*int64(len(whole)) >= sum {
				m.release(b)
				target -= b.size
				freed = true
			}
		}
	}
}

func (m *torchModel) releaseAvailable(size int64, small bool, stream cuda.Stream) bool {
	want := max(size, m.maxSplit)
	lane := m.lane(small, stream)
	for _, b := range lane {
		if b.size >= want {
			m.release(b)
			return true
		}
	}
	released := int64(0)
	for _, b := range slices.Backward(lane) {
		if released >= want || b.size < m.maxSplit {
			break
		}
		m.release(b)
		released += b.size
	}
	return released >= want
}

func (m *torchModel) releaseAll() {
	for _, small := range []bool{false, true} {
		for _, b := range m.cached(small) {
			if b.whole() {
				m.release(b)
			}
		}
	}
}

// TestTorchAgainstModel makes the same random requests of Torch and of the model, on devices that become full, and expects the same
// addresses, the same memory taken and the same retries.
func TestTorchAgainstModel(t *testing.T) {
	for _, settings := range []string{
		"", "max_split_size_mb:24", "max_split_size_mb:32,max_non_split_rounding_mb:24", "garbage_collection_threshold:0.5",
		"garbage_collection_threshold:0.3,max_split_size_mb:24",
	} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%s/%d", settings, seed), func(t *testing.T) { againstModel(t, settings, seed) })
		}
	}
}

func againstModel(t *testing.T, settings string, seed uint64) {
	conf, err := allocconf.Parse(settings)
	if err != nil {
		t.Fatal(err)
	}
	const capacity = 256 << 20
	a, err := NewTorch(sim.New(capacity, sim.CostTable{}), conf)
	if err != nil {
		t.Fatal(err)
	}
	m := &torchModel{
		dev: sim.New(capacity, sim.CostTable{}), searches: map[bool]int64{},
		maxSplit: conf.MaxSplitSize, rounding: conf.MaxNonSplitRounding, gc: conf.GCThreshold,
	}
	if m.gc > 0 {
		m.limit = capacity
	}
	rng := rand.New(rand.NewPCG(seed, 31))
	sizes := [...]int64{
		512, 3000, 1 << 20, 1<<20 + 512, 5 << 20, 10<<20 - 512, 19 << 20, 22 << 20, 24 << 20, 30 << 20, 32 << 20, 44 << 20, 46 << 20, 56 << 20,
	}
	var live []cuda.Ptr
	for step := range 1500 {
		if len(live) > 0 && (rng.IntN(2) == 0 || len(live) > 24) {
			i := rng.IntN(len(live))
			if err := a.Free(live[i]); err != nil {
				t.Fatal(err)
			}
			m.free(live[i])
			live = slices.Delete(live, i, i+1)
			continue
		}
		size, stream := sizes[rng.IntN(len(sizes))], cuda.Stream(rng.IntN(2))
		p, err := a.Malloc(size, stream, 0)
		if want := m.malloc(size, stream); p != want {
			t.Fatalf("step %d: %d bytes at %#x (%v), the model has them at %#x", step, size, p, err, want)
		}
		if p != 0 {
			live = append(live, p)
		}
		if s := a.Stats(); s.Reserved != m.reserved || s.Retries != m.retries {
			t.Fatalf("step %d: %+v, the model has taken %d bytes, with %d retries", step, s, m.reserved, m.retries)
		}
	}
	if m.retries == 0 {
		t.Error("the device was never full: the test is too easy")
	}
}
