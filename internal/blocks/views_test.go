package blocks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// viewed is a block that is handed out or pending.
type viewed struct {
	ptr     cuda.Ptr
	size    int64
	pending bool
}

// viewing is an allocator on one stream whose blocks, all of multiples of plainUnit, other streams use now and then.
type viewing struct {
	t      *testing.T
	rng    *rand.Rand
	dev    *sim.Device
	a      Allocator
	blocks []viewed
	events []cuda.Event
}

func (v *viewing) malloc(size int64) {
	v.t.Helper()
	before := v.a.Stats().Allocated
	p, err := v.a.Malloc(size, 0, 0)
	if err != nil {
		v.t.Fatal(err)
	}
	v.blocks = append(v.blocks, viewed{ptr: p, size: v.a.Stats().Allocated - before})
}

// free frees the i-th block, which stays in use if another stream has borrowed it.
func (v *viewing) free(i int, lent bool) {
	v.t.Helper()
	b := &v.blocks[i]
	stream := cuda.Stream(0)
	if lent {
		stream = 5
	}
	err := v.a.RecordStream(b.ptr, stream)
	if err == nil {
		v.events = append(v.events, v.dev.Hold(func() { err = v.a.Free(b.ptr) })...)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	b.pending = lent
	if !lent {
		v.blocks = slices.Delete(v.blocks, i, i+1)
	}
}

// pass lets the other stream finish. The next request notices.
func (v *viewing) pass() {
	v.t.Helper()
	v.dev.Complete(v.events)
	v.events = nil
	v.blocks = slices.DeleteFunc(v.blocks, func(b viewed) bool { return b.pending })
	v.malloc(4 << 20)
}

// random does one thing at random.
func (v *viewing) random() {
	var live []int
	for i, b := range v.blocks {
		if !b.pending {
			live = append(live, i)
		}
	}
	switch x := v.rng.IntN(100); {
	case x < 50 && len(live) < 25 || len(live) == 0:
		v.malloc(int64(3+v.rng.IntN(1<<(1+v.rng.IntN(6)))) * plainUnit)
	case x < 98:
		v.free(live[v.rng.IntN(len(live))], v.rng.IntN(6) == 0)
	default:
		v.pass()
	}
}

// checkHeld expects that the holdings show each block, by its address, and the pending bytes.
func (v *viewing) checkHeld() {
	v.t.Helper()
	blocks, pending := map[cuda.Ptr]int64{}, int64(0)
	for _, b := range v.blocks {
		if b.pending {
			pending += b.size
		} else {
			blocks[b.ptr] += b.size
		}
	}
	var reserved int64
	for _, h := range v.a.Holdings() {
		reserved, pending = reserved+h.Size, pending-h.Pending
		for _, u := range h.Uses {
			if blocks[u.Block] -= u.Bytes; blocks[u.Block] == 0 {
				delete(blocks, u.Block)
			}
		}
	}
	if len(blocks) > 0 || pending != 0 || reserved != v.a.Stats().Reserved {
		v.t.Fatalf("the holdings are wrong by %v bytes of blocks and %d bytes that are pending, with %d bytes of %+v",
			blocks, pending, reserved, v.a.Stats())
	}
}

// TestEveryHolding checks what each allocator, the lower bound included, holds of blocks of whole chunks, and which are pending.
func TestEveryHolding(t *testing.T) {
	for _, spec := range append(candidates(t), Spec{Entry: &floorEntry, Text: "floor"}) {
		if spec.Planned || spec.Text == "gmlake:frag_limit=16MiB" {
			continue // what is lent does not matter to a plan, and the account does not say when a block is larger than asked
		}
		t.Run(spec.Text, func(t *testing.T) {
			dev := sim.New(0, sim.CostTable{})
			var a Allocator
			var err error
			if spec.Imaginary {
				a, err = NewFloor(dev, 512)
			} else {
				a = spec.open(t, dev)
			}
			if err != nil {
				t.Fatal(err)
			}
			v := &viewing{t: t, rng: rand.New(rand.NewPCG(1, 61)), dev: dev, a: a}
			for range 12 {
				for range 10 {
					v.malloc((1 + v.rng.Int64N(30)) * 4 << 20)
				}
				for range 3 {
					v.free(v.rng.IntN(3), false)
				}
				v.checkHeld()
				v.free(len(v.blocks)-1, true)
				v.checkHeld()
				v.pass()
				v.checkHeld()
				for len(v.blocks) > 6 {
					v.free(v.rng.IntN(len(v.blocks)), false)
				}
			}
		})
	}
}

// shown is a unit of memory as a snapshot shows it.
type shown struct {
	state BlockState
	begin bool // a segment begins here
}

// plainSegments is Stitch.Segments by its definition: each piece at its home, where it begins a segment unless it follows a piece that has
// its home before it, and what has no home at the first of its mappings. What is handed out at other addresses, or is of a block that begins
// at other addresses, is in use.
func plainSegments(t *testing.T, dev *sim.Device, s *Stitch, blocks []viewed) map[cuda.Ptr]shown {
	t.Helper()
	all, homes := map[cuda.Ptr]shown{}, map[cuda.Ptr]bool{}
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.heap == none {
			continue
		}
		at := s.mappings[p.mappings[0]].ptr
		if p.home != none {
			at = s.mappings[p.home].ptr
		}
		for u := int64(0); u < p.size; u += plainUnit {
			all[at+cuda.Ptr(u)] = shown{begin: u == 0}
			homes[at+cuda.Ptr(u)] = p.home != none
		}
	}
	here := map[sim.Extent]cuda.Ptr{} // by unit of physical memory
	for at := range all {
		extents, err := dev.Extents(at, plainUnit)
		if err != nil {
			t.Fatal(err)
		}
		here[extents[0]] = at
		if before := at - plainUnit; homes[at] && homes[before] {
			all[at] = shown{}
		}
	}
	for _, b := range blocks {
		begun := true // the block has been at home up to here
		for u := cuda.Ptr(0); u < cuda.Ptr(b.size); u += plainUnit {
			extents, err := dev.Extents(b.ptr+u, plainUnit)
			if err != nil {
				t.Fatal(err)
			}
			at := here[extents[0]]
			unit := all[at]
			unit.state = BlockUsed
			if begun = begun && at == b.ptr+u; begun && b.pending {
				unit.state = BlockPending
			}
			all[at] = unit
		}
	}
	return all
}

// unitsOf returns the units of segments, and checks that blocks cover them in order, and that no free block follows another.
func unitsOf(t *testing.T, segments []SegmentView) map[cuda.Ptr]shown {
	t.Helper()
	all := map[cuda.Ptr]shown{}
	last := cuda.Ptr(0)
	for _, s := range segments {
		at := s.Address
		for i, b := range s.Blocks {
			if b.Address != at || b.Size <= 0 || i > 0 && b.State == BlockFree && s.Blocks[i-1].State == BlockFree {
				t.Fatalf("block %d of %+v", i, s)
			}
			for ; at < b.Address+cuda.Ptr(b.Size); at += plainUnit {
				all[at] = shown{b.State, at == s.Address}
			}
		}
		if s.Address < last || at != s.Address+cuda.Ptr(s.Size) {
			t.Fatalf("segment %+v after one that ends at %#x", s, last)
		}
		last = at
	}
	return all
}

// TestSegmentsByUnits compares what a snapshot of Stitch shows with its definition, with blocks that are shown at several addresses, and with
// pieces that went to another stream.
func TestSegmentsByUnits(t *testing.T) {
	elsewhere, homeless := 0, 0
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dev := sim.New(0, sim.CostTable{})
			conf := tightConf()
			conf.Aliases = 8
			s, err := NewStitch(dev, conf)
			if err != nil {
				t.Fatal(err)
			}
			v := &viewing{t: t, rng: rand.New(rand.NewPCG(seed, 67)), dev: dev, a: s}
			for i := range 600 {
				v.random()
				if i%10 > 0 {
					continue
				}
				if id := s.heapOf(0).idle.last(); i%100 == 0 && id != none { // another stream takes a piece
					if err := s.pass(id, s.heapOf(3)); err != nil {
						t.Fatal(err)
					}
				}
				got, want := unitsOf(t, s.Segments()), plainSegments(t, dev, s, v.blocks)
				for at, unit := range want {
					if got[at] != unit {
						t.Fatalf("step %d: %#x is %+v, want %+v", i, at, got[at], unit)
					}
				}
				if len(got) != len(want) {
					t.Fatalf("step %d: %d units are shown, want %d", i, len(got), len(want))
				}
				for _, h := range s.Holdings() {
					if _, ok := want[h.Address]; !ok {
						t.Fatalf("step %d: a piece is held at %#x, where it is not at home", i, h.Address)
					}
				}
				for _, b := range v.blocks {
					if _, ok := want[b.ptr]; !ok {
						elsewhere++
					}
				}
				for i := range s.pieces {
					if p := &s.pieces[i]; p.heap != none && p.home == none {
						homeless++
					}
				}
				v.checkHeld()
			}
		})
	}
	if elsewhere < 100 || homeless < 10 {
		t.Errorf("%d blocks were elsewhere, %d pieces had no home: the test is too easy", elsewhere, homeless)
	}
}
