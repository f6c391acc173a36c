package blocks

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// graphPool is the private pool that is brought back to earlier states.
const graphPool Pool = 5

// exchanging makes random requests of a private pool and of the default one, and brings the private one back to earlier states.
type exchanging struct {
	t      *testing.T
	rng    *rand.Rand
	dev    *faulty
	a      Exchanger
	live   map[cuda.Ptr]held
	gone   []held // freed, with the work of other streams
	states [][]Place
	failed int
}

// held is a block as the test knows it.
type held struct {
	Place
	pool Pool
	lent []point // work of other streams
}

func (h *held) meets(o *held) bool {
	return h.Address < o.Address+cuda.Ptr(o.Size) && o.Address < h.Address+cuda.Ptr(h.Size)
}

// TestExchange brings a pool back to what it was, again and again, also while calls of the driver fail.
func TestExchange(t *testing.T) {
	specs, err := ParseSpecs("torch,torch:roundup_power2_divisions=4,expandable,stitch,cyclic")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", spec.Text, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 21))
				dev := &faulty{streams: newStreams(t, rng, 3, 2<<30)}
				x := exchanging{t: t, rng: rng, dev: dev, a: spec.open(t, dev).(Exchanger), live: map[cuda.Ptr]held{}}
				if seed%3 == 2 {
					for _, c := range [...]call{callEventRecord, callEventQuery, callEventSynchronize, callStreamSynchronize} {
						dev.fails[c] = failOften(rng, errInjected)
					}
				}
				for range 1500 {
					x.step()
				}
				if (x.failed > 0) != (seed%3 == 2) {
					t.Errorf("%d exchanges failed", x.failed)
				}
				dev.fails = [numCalls]func(int) error{}
				for p := range x.live {
					x.free(p)
				}
				dev.complete(dev.stuck, dev.submitted[dev.stuck])
				none, err := x.a.(Resident).EmptyPool(graphPool)
				if err := errors.Join(err, x.a.Empty()); err != nil || !none || dev.Used() != 0 {
					t.Errorf("%d bytes are left: %v", dev.Used(), err)
				}
			})
		}
	}
}

func (x *exchanging) step() {
	switch n := x.rng.IntN(100); {
	case n < 50:
		x.malloc()
	case n < 85:
		for p := range x.live {
			x.free(p)
			break
		}
	case n < 92:
		x.lend()
	case n < 95:
		x.states = append(x.states, x.state())
	case n < 96:
		if err := x.a.Empty(); err != nil && !errors.Is(err, errInjected) {
			x.t.Fatal(err)
		}
	case n < 98 && len(x.states) > 0:
		x.restore(x.states[x.rng.IntN(len(x.states))])
	default:
		x.refuse()
	}
	x.check()
}

func (x *exchanging) malloc() {
	sizes := [...]int64{1, 600, 3000, 700 << 10, 1<<20 + 1, 3 << 20, 9 << 20, 21 << 20}
	size := sizes[x.rng.IntN(len(sizes))] + x.rng.Int64N(3)*(300<<10)
	h := held{Place: Place{Size: size, Stream: cuda.Stream(x.rng.IntN(2))}, pool: graphPool}
	if x.rng.IntN(4) == 0 {
		h.pool = 0
	}
	p, err := x.a.Malloc(h.Size, h.Stream, h.pool)
	if err != nil {
		if !errors.Is(err, errInjected) && !errors.Is(err, cuda.ErrOutOfMemory) {
			x.t.Fatal(err)
		}
		return
	}
	h.Address = p
	x.enter(h)
}

// enter adds a block, which must share nothing with live ones, nor with what another stream may still use.
func (x *exchanging) enter(h held) {
	for _, other := range x.live {
		if h.meets(&other) {
			x.t.Fatalf("%+v shares memory with %+v", h, other)
		}
	}
	for i := range x.gone {
		for _, p := range x.gone[i].lent {
			if h.meets(&x.gone[i]) && !x.dev.after(h.Stream, p) {
				x.t.Fatalf("%+v has memory that stream %d uses", h, p.stream)
			}
		}
	}
	x.live[h.Address] = h
	x.dev.work(h.Stream, h.Address, h.Size)
}

func (x *exchanging) free(p cuda.Ptr) {
	if err := x.a.Free(p); err != nil && !errors.Is(err, errInjected) {
		x.t.Fatal(err)
	}
	x.leave(p)
}

func (x *exchanging) leave(p cuda.Ptr) {
	if h := x.live[p]; h.lent != nil {
		x.gone = append(x.gone, h)
	}
	delete(x.live, p)
}

// lend has another stream use a block.
func (x *exchanging) lend() {
	for p, h := range x.live {
		if err := x.a.RecordStream(p, 2); err != nil {
			x.t.Fatal(err)
		}
		h.lent = append(h.lent, x.dev.work(2, p, h.Size))
		x.live[p] = h
		return
	}
}

// mine returns the addresses of the live blocks of the private pool.
func (x *exchanging) mine() []cuda.Ptr {
	var all []cuda.Ptr
	for _, p := range x.state() {
		all = append(all, p.Address)
	}
	return all
}

// state returns the live blocks of the private pool.
func (x *exchanging) state() []Place {
	var all []Place
	for _, h := range x.live {
		if h.pool == graphPool {
			all = append(all, h.Place)
		}
	}
	return all
}

func (x *exchanging) restore(state []Place) {
	freed, taken := x.mine(), slices.Clone(state)
	switch err := x.a.Exchange(graphPool, freed, taken); {
	case errors.Is(err, errInjected):
		x.failed++
		return
	case err != nil:
		x.t.Fatal(err)
	}
	before := maps.Clone(x.live)
	for _, p := range freed {
		x.leave(p)
	}
	for _, p := range taken {
		if p.Taken < p.Size {
			x.t.Fatalf("%+v", p)
		}
		p.Taken = 0
		x.enter(held{Place: p, pool: graphPool, lent: before[p.Address].lent})
	}
}

// refuse asks for what cannot be: nothing may change.
func (x *exchanging) refuse() {
	freed := x.mine()
	if len(freed) == 0 {
		return
	}
	var taken []Place
	some := x.live[freed[0]].Place
	other := some
	switch x.rng.IntN(6) {
	case 0:
		taken = append(taken, some, some)
	case 1:
		freed = freed[1:]
		taken = append(taken, some)
	case 2:
		freed = append(freed, 12345<<9)
	case 3:
		other.Stream = 2
		taken = append(taken, other)
	case 4:
		other.Size = 1 << 40
		taken = append(taken, other)
	default:
		other.Address += 7
		taken = append(taken, other)
	}
	if err := x.a.Exchange(graphPool, freed, taken); err == nil {
		x.t.Fatalf("exchanged %v for %v", freed, taken)
	}
}

// check compares the allocator's own account of the private pool with the live blocks.
func (x *exchanging) check() {
	used := map[cuda.Ptr]int64{}
	for _, s := range x.a.(interface{ Segments() []SegmentView }).Segments() {
		for _, b := range s.Blocks {
			if s.Pool == graphPool && b.State == BlockUsed {
				used[b.Address] = b.Size
			}
		}
	}
	for _, p := range x.state() {
		if used[p.Address] < p.Size {
			x.t.Fatalf("block %+v has %d bytes", p, used[p.Address])
		}
		delete(used, p.Address)
	}
	if s := x.a.Stats(); len(used) > 0 || s.Allocated > s.Reserved {
		x.t.Fatalf("%d blocks too many; %+v", len(used), s)
	}
}

// TestExchangeKeepsUsers leaves a block that another stream uses lent to it.
func TestExchangeKeepsUsers(t *testing.T) {
	dev := newStreams(t, rand.New(rand.NewPCG(1, 23)), 3, 1<<30)
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Malloc(3<<20, 0, graphPool)
	if err := errors.Join(err, a.RecordStream(p, 2)); err != nil {
		t.Fatal(err)
	}
	if err := a.Exchange(graphPool, []cuda.Ptr{p}, []Place{{Address: p, Size: 3 << 20}}); err != nil {
		t.Fatal(err)
	}
	dev.work(2, p, 3<<20)
	if err := a.Free(p); err != nil {
		t.Fatal(err)
	}
	if _, large := a.torch.Pending(); large < 3<<20 {
		t.Errorf("%d bytes wait for a stream", large)
	}
}

// TestExchangeDuringCapture waits for no stream while a graph is captured.
func TestExchangeDuringCapture(t *testing.T) {
	dev := newStreams(t, rand.New(rand.NewPCG(1, 22)), 3, 1<<30)
	a, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	get := func(size int64) cuda.Ptr {
		p, err := a.Malloc(size, 0, graphPool)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, q := get(3<<20), get(3<<20)
	if err := errors.Join(a.RecordStream(p, 1), a.Capture(true)); err != nil {
		t.Fatal(err)
	}
	dev.capturing = true
	if err := a.Exchange(graphPool, []cuda.Ptr{p}, nil); !errors.Is(err, cuda.ErrCapturing) {
		t.Errorf("a lent block: %v", err)
	}
	if err := a.Exchange(graphPool, []cuda.Ptr{q}, []Place{{Address: q, Size: 2 << 20}}); err != nil {
		t.Error(err)
	}
	if err := a.Free(p); err != nil {
		t.Fatal(err)
	}
	if err := a.Exchange(graphPool, nil, []Place{{Address: p, Size: 3 << 20}}); err == nil {
		t.Error("a block that another stream may still use was handed out")
	}
}

// TestExchangeSplits: what an exchanged block takes depends on whether the rest of its memory can be split off.
func TestExchangeSplits(t *testing.T) {
	for _, c := range []struct {
		expandable bool
		size, took int64
	}{
		{false, 19 << 20, 20 << 20}, {false, 18 << 20, 18 << 20}, {true, 19 << 20, 19 << 20}, {true, 20<<20 - 512, 20<<20 - 512},
	} {
		conf := allocconf.Default()
		conf.Expandable = c.expandable
		a, err := NewTorch(sim.New(0, sim.CostTable{}), conf)
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Malloc(20<<20, 0, graphPool)
		if err != nil {
			t.Fatal(err)
		}
		places := []Place{{Address: p, Size: c.size}}
		if err := a.Exchange(graphPool, []cuda.Ptr{p}, places); err != nil || places[0].Taken != c.took {
			t.Errorf("%+v: %d bytes taken; %v", c, places[0].Taken, err)
		}
	}
}

// TestExchangeRefuses what is no size, and addresses behind all memory.
func TestExchangeRefuses(t *testing.T) {
	a, err := NewTorch(sim.New(0, sim.CostTable{}), allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Malloc(20<<20, 0, graphPool)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []Place{
		{Address: p}, {Address: p, Size: -512}, {Address: p, Size: MaxSize + 1}, {Address: p + 20<<20, Size: 2 << 20}, {Address: p - 2<<20, Size: 2 << 20},
	} {
		if err := a.Exchange(graphPool, []cuda.Ptr{p}, []Place{place}); err == nil {
			t.Errorf("%+v: no error", place)
		}
	}
	if err := a.Free(p); err != nil {
		t.Error(err)
	}
}
