package blocks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// tighter are settings under which allocators do more on a small device than by default.
const tighter = "torch:max_split_size_mb=32,torch:garbage_collection_threshold=0.6,torch:roundup_power2_divisions=8," +
	"gmlake:frag_limit=16MiB,gmlake:request_limit=16MiB,gmlake:stitch_limit=64MiB,stitch:piece_min=2MiB,piece_max=4MiB,pieces=64,parts=4," +
	"gmlake-code:fragLimit=8MiB,gmlake-code:fragLimit=8MiB,reuseLimit=2,autoGC=0,defragLevel=1"

// candidates returns every allocator that has memory, by default and with tighter settings.
func candidates(t testing.TB) []Spec {
	t.Helper()
	all, err := ParseSpecs(tighter)
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.DeleteFunc(AllSpecs(), func(s Spec) bool { return s.Imaginary }), all...)
}

// open returns the allocator on a device, for a job about which nothing is known.
func (s Spec) open(t testing.TB, dev cuda.Device) Allocator {
	t.Helper()
	a, err := s.New(dev, Job{Align: minBlockSize})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAllocatorsShareNoByte makes random requests and checks, after each, what no allocator may violate.
func TestAllocatorsShareNoByte(t *testing.T) {
	for _, spec := range candidates(t) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", spec.Text, seed), func(t *testing.T) {
				dev := sim.New(512<<20, sim.H200())
				h := newHarness(t, rand.New(rand.NewPCG(seed, 1)), dev, spec.open(t, dev))
				h.crosses = spec.CrossesStreams
				for i := range 3000 {
					if h.step(); i%50 == 0 {
						h.checkHoldings()
					}
				}
				h.freeAll()
				if oom := h.ooms; oom == 0 {
					t.Error("the device was never full: the test is too easy")
				}
			})
		}
	}
}

// tenant is a live or pending block.
type tenant struct {
	size    int64
	extents []sim.Extent
}

// memoryKey names physical memory as the device gave it, and owner who may use it.
type (
	memoryKey struct {
		handle cuda.Handle
		base   cuda.Ptr
	}
	owner struct {
		stream cuda.Stream
		pool   Pool
	}
)

type pendingFree struct {
	tenant
	events []cuda.Event
}

type harness struct {
	t       *testing.T
	rng     *rand.Rand
	dev     *sim.Device
	a       Allocator
	live    map[cuda.Ptr]tenant
	order   []cuda.Ptr
	pending []pendingFree
	owners  map[memoryKey]owner
	owned   int64
	ooms    int
	crosses bool // memory may pass from stream to stream
}

func newHarness(t *testing.T, rng *rand.Rand, dev *sim.Device, a Allocator) *harness {
	return &harness{t: t, rng: rng, dev: dev, a: a, live: map[cuda.Ptr]tenant{}, owners: map[memoryKey]owner{}}
}

func (h *harness) step() {
	switch x := h.rng.IntN(100); {
	case x < 52:
		h.malloc()
	case x < 92:
		h.free()
	case x < 99:
		h.complete()
	default:
		h.completeAll()
		if err := h.a.Empty(); err != nil {
			h.t.Fatal(err)
		}
	}
	s := h.a.Stats()
	if s.Allocated > s.Reserved {
		h.t.Fatalf("%d bytes allocated of %d reserved", s.Allocated, s.Reserved)
	}
	if s.Allocated < h.owned {
		h.t.Fatalf("%d bytes allocated, but %d are handed out", s.Allocated, h.owned)
	}
	if s.Reserved != h.dev.Used() {
		h.t.Fatalf("%d bytes reserved, but %d are taken from the device", s.Reserved, h.dev.Used())
	}
}

// checkHoldings checks that the holdings add up to what is reserved, and that no more is in use than there is.
func (h *harness) checkHoldings() {
	reserved := h.a.Stats().Reserved
	for _, holding := range h.a.Holdings() {
		reserved -= holding.Size
		if holding.Free() < 0 || holding.Pending < 0 {
			h.t.Fatalf("holding %+v", holding)
		}
	}
	if reserved != 0 {
		h.t.Fatalf("holdings are %d bytes short of what is reserved", reserved)
	}
}

func (h *harness) malloc() {
	sizes := [...]int64{1, 512, 3000, 1 << 20, 1<<20 + 1, 5 << 20, 9 << 20, 20 << 20, 33 << 20}
	size := sizes[h.rng.IntN(len(sizes))] + h.rng.Int64N(3)*(512<<10)
	h.mallocOf(size, owner{cuda.Stream(h.rng.IntN(2)), Pool(h.rng.IntN(20) / 19)})
}

// mallocOf returns a new block, 0 if the device is full.
func (h *harness) mallocOf(size int64, by owner) cuda.Ptr {
	p, err := h.a.Malloc(size, by.stream, by.pool)
	var oom *OOMError
	if errors.As(err, &oom) {
		h.ooms++
		return 0
	}
	if err != nil {
		h.t.Fatal(err)
	}
	extents, err := h.dev.Extents(p, size)
	if err != nil {
		h.t.Fatalf("block of %d bytes at %#x: %v", size, p, err)
	}
	for q, other := range h.live {
		h.checkApart(extents, other.extents, fmt.Sprintf("live block at %#x", q))
	}
	for _, other := range h.pending {
		if h.inUse(other) {
			h.checkApart(extents, other.extents, "block that a stream still uses")
		}
	}
	for _, e := range extents {
		key := memoryKey{e.Handle, e.Base}
		if was, ok := h.owners[key]; ok && was != by && (was.pool != by.pool || !h.crosses) {
			h.t.Fatalf("memory of stream and pool %v passed to %v", was, by)
		}
		h.owners[key] = by
	}
	h.live[p] = tenant{size, extents}
	h.order = append(h.order, p)
	h.owned += size
	return p
}

// inUse reports whether a stream still uses a freed block. It does not if a full device made the allocator wait for it.
func (h *harness) inUse(p pendingFree) bool {
	for _, e := range p.events {
		if passed, _ := h.dev.EventQuery(e); !passed {
			return true
		}
	}
	return false
}

func (h *harness) checkApart(a, b []sim.Extent, what string) {
	for _, x := range a {
		for _, y := range b {
			if x.Overlaps(y) {
				h.t.Fatalf("new block shares %+v with a %s", x, what)
			}
		}
	}
}

func (h *harness) free() {
	if len(h.order) == 0 {
		return
	}
	h.drop(h.order[h.rng.IntN(len(h.order))])
}

// drop frees a block.
func (h *harness) drop(p cuda.Ptr) {
	i := slices.Index(h.order, p)
	h.order[i] = h.order[len(h.order)-1]
	h.order = h.order[:len(h.order)-1]
	gone := h.live[p]
	delete(h.live, p)
	h.owned -= gone.size
	var err error
	events := h.dev.Hold(func() {
		if h.rng.IntN(4) == 0 {
			err = h.a.RecordStream(p, cuda.Stream(2+h.rng.IntN(3)))
		}
		if err == nil {
			err = h.a.Free(p)
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(events) > 0 {
		h.pending = append(h.pending, pendingFree{gone, events})
	}
}

func (h *harness) complete() {
	if len(h.pending) > 0 {
		i := h.rng.IntN(len(h.pending))
		h.dev.Complete(h.pending[i].events)
		h.pending = append(h.pending[:i], h.pending[i+1:]...)
	}
}

func (h *harness) completeAll() {
	for len(h.pending) > 0 {
		h.complete()
	}
}

// freeAll frees everything and expects an empty account.
func (h *harness) freeAll() {
	for len(h.order) > 0 {
		h.free()
	}
	h.completeAll()
	if err := h.a.Empty(); err != nil {
		h.t.Fatal(err)
	}
	if s := h.a.Stats(); s.Allocated != 0 || s.Reserved != h.dev.Used() {
		h.t.Errorf("after all were freed: %+v, and %d bytes are taken from the device", s, h.dev.Used())
	}
}

func TestWrongAddresses(t *testing.T) {
	for _, spec := range candidates(t) {
		t.Run(spec.Text, func(t *testing.T) {
			a := spec.open(t, sim.New(1<<30, sim.H200()))
			p, err := a.Malloc(3<<20, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Free(p + 512); err == nil {
				t.Error("free of an address inside a block: no error")
			}
			if err := a.Free(p); err != nil {
				t.Error(err)
			}
			if err := a.Free(p); err == nil {
				t.Error("second free: no error")
			}
			if p, err := a.Malloc(0, 0, 0); p != 0 || err != nil {
				t.Errorf("malloc of 0 bytes: %#x, %v; want 0, nil", p, err)
			}
			if err := a.Free(0); err != nil {
				t.Errorf("free of address 0: %v", err)
			}
			for _, size := range []int64{-1, 1 << 62} {
				if _, err := a.Malloc(size, 0, 0); err == nil {
					t.Errorf("malloc of %d bytes: no error", size)
				}
			}
		})
	}
}
