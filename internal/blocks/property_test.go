package blocks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// candidates makes every allocator that places memory, on dev.
func candidates(t *testing.T) map[string]func(dev *sim.Device) Allocator {
	torch := func(settings string) func(dev *sim.Device) Allocator {
		return func(dev *sim.Device) Allocator {
			conf, err := allocconf.Parse(settings)
			if err != nil {
				t.Fatal(err)
			}
			a, err := NewTorch(dev, conf)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	lake := func(conf GMLakeConf) func(dev *sim.Device) Allocator {
		return func(dev *sim.Device) Allocator {
			a, err := NewGMLake(dev, conf)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	code := func(conf GMLakeCodeConf) func(dev *sim.Device) Allocator {
		return func(dev *sim.Device) Allocator {
			a, err := NewGMLakeCode(dev, conf)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	stitched := func(conf StitchConf) func(dev *sim.Device) Allocator {
		return func(dev *sim.Device) Allocator {
			a, err := NewStitch(dev, conf)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	return map[string]func(dev *sim.Device) Allocator{
		"native":              func(dev *sim.Device) Allocator { return NewNative(dev) },
		"torch":               torch(""),
		"torch max_split":     torch("max_split_size_mb:32"),
		"torch gc":            torch("garbage_collection_threshold:0.6"),
		"torch divisions":     torch("roundup_power2_divisions:8"),
		"expandable":          torch("expandable_segments:True"),
		"gmlake":              lake(DefaultGMLakeConf()),
		"gmlake frag_limit":   lake(GMLakeConf{FragLimit: 16 << 20, StitchLimit: 1 << 40}),
		"gmlake stitch_limit": lake(GMLakeConf{FragLimit: 2 << 20, StitchLimit: 64 << 20}),
		"stitch":              stitched(DefaultStitchConf()),
		"stitch small":        stitched(StitchConf{PieceMin: 2 << 20, PieceMax: 4 << 20, Pieces: 64, Parts: 4, Aliases: 1}),
		"gmlake-code":         code(GMLakeCodeConf{FragLimit: 8 << 20, ReuseLimit: 10, AutoGC: 1000}),
		"gmlake-code autoGC":  code(GMLakeCodeConf{FragLimit: 8 << 20, ReuseLimit: 2, AutoGC: 0, Level: 1}),
	}
}

// TestAllocatorsShareNoByte runs random requests and looks, after each, for what no allocator may do.
func TestAllocatorsShareNoByte(t *testing.T) {
	for name, make := range candidates(t) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				dev := sim.New(512<<20, sim.H200())
				h := harness{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dev: dev, a: make(dev), live: map[cuda.Ptr]tenant{}, owners: map[memoryKey]owner{}}
				for range 3000 {
					h.step()
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
		if was, ok := h.owners[key]; ok && was != by && (was.pool != by.pool || !h.crosses()) {
			h.t.Fatalf("memory of stream and pool %v passed to %v", was, by)
		}
		h.owners[key] = by
	}
	h.live[p] = tenant{size, extents}
	h.order = append(h.order, p)
	h.owned += size
	return p
}

// crosses says whether memory may pass from stream to stream.
func (h *harness) crosses() bool {
	switch h.a.(type) {
	case *Stitch, *Cyclic:
		return true
	}
	return false
}

// inUse says whether a stream still uses a freed block: no longer, if a full device made the allocator wait for it.
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

// freeAll gives everything back and expects an empty account.
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
	for name, make := range candidates(t) {
		t.Run(name, func(t *testing.T) {
			a := make(sim.New(1<<30, sim.H200()))
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
