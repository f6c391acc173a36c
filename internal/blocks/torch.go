package blocks

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
)

var torchEntry = Entry{
	Name: "torch", OneAddress: true, InProcess: true,
	About:     "PyTorch's caching allocator; settings of PYTORCH_CUDA_ALLOC_CONF, those of the recording if none are given",
	configure: func(text string) (maker, error) { return configureTorch(text, false) },
}

var expandableEntry = Entry{
	Name: "expandable", About: "PyTorch with expandable_segments:True; settings as of torch", OneAddress: true, InProcess: true,
	configure: func(text string) (maker, error) { return configureTorch(text, true) },
}

// configureTorch parses settings of PyTorch's allocator. Without settings the allocator has those of the job's recording. Segments are
// expandable if expandable is set or the given settings say so.
func configureTorch(text string, expandable bool) (maker, error) {
	given, err := allocconf.Parse(text)
	return func(dev cuda.Device, job *Job) (Allocator, error) {
		conf := given
		if text == "" {
			conf, _ = allocconf.Recorded(job.AllocConf)
			conf.Expandable = false
		}
		conf.Expandable = conf.Expandable || expandable
		return NewTorch(dev, conf)
	}, err
}

// PyTorch's constants (c10/cuda/CUDACachingAllocator.cpp), in bytes.
const (
	minBlockSize = allocconf.MinBlock
	smallSize    = 1 << 20 // requests up to this size go to the small pool
	smallSegment = 2 << 20
	minLarge     = 10 << 20 // requests of at least this size get a segment of their own size
	roundLarge   = 2 << 20
)

// Torch is PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.11): best fit by (stream, size, address) among the
// free blocks of a small and a large pool, in segments from cudaMalloc or, with expandable_segments, in address ranges that
// grow by mapping pages. Given the addresses that PyTorch's segments had, it places every block where PyTorch did.
type Torch struct {
	dev   cuda.Device
	conf  allocconf.Conf
	limit int64 // bytes that may be reserved; 0 is no limit

	store store
	index index
	pools []*torchPool   // the small and the large half of each pool, those of the default pool first
	pairs map[Pool]int32 // index of a private pool's small half; the large one is next to it

	expandables []*expandable
	lender      lender
	stats       Stats
	outside     *outside            // nil unless small requests are served elsewhere
	yield       func(n int64) error // has what shares the device release n unused bytes, or less; nil if nothing does
	hasty       bool                // a request that finds no room fails before the cache is released
}

// torchPool is the small or the large half of a pool.
type torchPool struct {
	small    bool
	lanes    []*lane // by stream, compared as PyTorch compares the handles: unsigned
	recent   *lane   // the last one that was looked up
	searches int64   // a clock for the age of blocks; ticks with garbage collection only
}

// lane is the free memory of one stream.
type lane struct {
	stream   cuda.Stream
	free     freeSet
	unmapped freeSet // by address: its rows have size 0
}

// NewTorch returns an allocator on dev.
func NewTorch(dev cuda.Device, conf allocconf.Conf) (*Torch, error) {
	t := &Torch{
		dev: dev, conf: conf, index: newIndex(), pairs: map[Pool]int32{}, pools: []*torchPool{{small: true}, {}},
	}
	t.lender = newLender(dev, t.freeBlock)
	if conf.NeedsLimit() {
		_, total, err := dev.MemInfo()
		if err != nil {
			return nil, fmt.Errorf("read the size of the device: %w", err)
		}
		t.limit = int64(conf.MemoryFraction * float64(total))
	}
	return t, nil
}

// half returns the index of the pool for blocks of this size.
func (t *Torch) half(pool Pool, size int64) int32 {
	i := int32(0)
	if pool != 0 {
		var ok bool
		if i, ok = t.pairs[pool]; !ok {
			i = int32(len(t.pools))
			t.pairs[pool] = i
			t.pools = append(t.pools, &torchPool{small: true}, &torchPool{})
		}
	}
	if size > smallSize {
		i++
	}
	return i
}

func (p *torchPool) lane(stream cuda.Stream) *lane {
	if p.recent != nil && p.recent.stream == stream {
		return p.recent
	}
	i, ok := slices.BinarySearchFunc(p.lanes, stream, func(l *lane, s cuda.Stream) int {
		switch {
		case uint64(l.stream) < uint64(s):
			return -1
		case uint64(l.stream) > uint64(s):
			return 1
		}
		return 0
	})
	if !ok {
		p.lanes = slices.Insert(p.lanes, i, &lane{stream: stream})
	}
	p.recent = p.lanes[i]
	return p.recent
}

// request is a Malloc in progress.
type request struct {
	size   int64 // rounded
	stream cuda.Stream
	pool   int32
	lane   *lane
}

// Malloc implements Allocator.
func (t *Torch) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	if err := t.lender.process(); err != nil {
		return 0, err
	}
	r := request{size: t.conf.RoundSize(size), stream: stream}
	r.pool = t.half(pool, r.size)
	r.lane = t.pools[r.pool].lane(stream)
	b := t.findFree(&r)
	if b == none {
		var err error
		if b, err = t.grow(&r); err != nil {
			return 0, err
		}
		if b == none {
			return 0, t.stats.oom(size)
		}
	}
	return t.handOut(b, &r), nil
}

// findFree takes the best fitting free block out of the lane, or returns none.
func (t *Torch) findFree(r *request) int32 {
	if t.conf.GCThreshold > 0 {
		t.pools[r.pool].searches++
	}
	set := &r.lane.free
	at := set.seek(r.size, 0)
	if !set.valid(at) {
		return none
	}
	if t.conf.Expandable {
		at = t.preferExpandable(set, at)
	} else if at = t.skipExpandable(set, at); !set.valid(at) {
		return none
	}
	size := set.at(at).size
	if limit := t.conf.MaxSplitSize; limit > 0 {
		if r.size < limit && size >= limit {
			return none
		}
		if r.size >= limit && size >= r.size+t.conf.MaxNonSplitRounding {
			return none
		}
	}
	return set.take(at).id
}

// handOut makes free block b, or its front, a used block.
func (t *Torch) handOut(b int32, r *request) cuda.Ptr {
	have := t.store.at(b)
	if t.shouldSplit(have.size, r.size, t.pools[r.pool].small, have.segment != none) {
		rest := b
		b = t.store.splitFront(rest, r.size)
		t.insertFree(rest, r.lane)
	}
	used := t.store.at(b)
	used.used = true
	t.index.Put(used.ptr, b)
	t.stats.allocate(used.size)
	return used.ptr
}

// shouldSplit reports whether a block of size bytes is split off a free block of have bytes.
func (t *Torch) shouldSplit(have, size int64, small, expandable bool) bool {
	rest := have - size
	if small || expandable {
		return rest >= minBlockSize
	}
	return (t.conf.MaxSplitSize == 0 || size < t.conf.MaxSplitSize) && rest > smallSize
}

func (t *Torch) insertFree(b int32, l *lane) {
	free := t.store.at(b).asFree(b)
	t.store.at(b).gcBase = t.pools[t.store.at(b).pool].searches
	l.free.insert(free)
}

func (b *block) asFree(id int32) free { return free{size: b.size, ptr: b.ptr, id: id} }

func (t *Torch) laneOf(b *block) *lane { return t.pools[b.pool].lane(b.stream) }

// Free implements Allocator.
func (t *Torch) Free(p cuda.Ptr) error {
	if p == 0 {
		return nil
	}
	id, ok := t.index.Take(p)
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	t.stats.Allocated -= t.store.at(id).size
	if t.lender.lent(id) {
		return t.lender.await(id)
	}
	t.freeBlock(id)
	return nil
}

// RecordStream implements Allocator.
func (t *Torch) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	if p == 0 {
		return nil
	}
	id, ok := t.index.Get(p)
	if !ok {
		return fmt.Errorf("record stream of %#x: %w", p, errUnknownAddress)
	}
	if stream != t.store.at(id).stream {
		t.lender.borrow(id, stream)
	}
	return nil
}

// freeBlock joins an unused block with its free neighbours and puts it into its lane.
func (t *Torch) freeBlock(id int32) {
	b := t.store.at(id)
	b.used = false
	l := t.laneOf(b)
	t.join(id, b.prev, l)
	t.join(id, b.next, l)
	t.insertFree(id, l)
}

// join merges neighbour j into block id if j is free and both are mapped, or both are not.
func (t *Torch) join(id, j int32, l *lane) {
	if j == none {
		return
	}
	n := t.store.at(j)
	if n.used || n.mapped != t.store.at(id).mapped {
		return
	}
	if n.mapped {
		l.free.remove(n.size, n.ptr)
	} else {
		l.unmapped.remove(0, n.ptr)
	}
	t.store.absorb(id, j)
}

// Capture implements [Resident]. During a capture, what waits for an event keeps waiting.
func (t *Torch) Capture(on bool) error {
	err := t.lender.capture(on)
	if t.outside != nil {
		err = errors.Join(err, t.outside.lender.capture(on))
	}
	return err
}

// Stats implements Allocator.
func (t *Torch) Stats() Stats { return t.stats }
