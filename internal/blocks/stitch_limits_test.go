package blocks

import (
	"errors"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

func newTight(t *testing.T, dev cuda.Device) *Stitch {
	t.Helper()
	s, err := NewStitch(dev, tightConf())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustMalloc returns the address of a block, for which there must be room.
func mustMalloc(t *testing.T, a Allocator, size int64, stream cuda.Stream) cuda.Ptr {
	t.Helper()
	p, err := a.Malloc(size, stream, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRegionSizes: addresses are reserved generously for the first regions, and by need from then on.
func TestRegionSizes(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	h := s.heapOf(0)
	for i := range manyRegions + 3 {
		id, err := s.begin(h, 6<<20)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(regionSize)
		if i >= manyRegions {
			want = 12<<20 + 4*s.conf.PieceMax
		}
		if got := s.regions[id].size; got != want {
			t.Errorf("region %d has %d bytes, want %d", i, got, want)
		}
	}
}

// TestMainRegionIsFilled: new pieces go into the main region as long as they fit, with what is free at its end.
func TestMainRegionIsFilled(t *testing.T) {
	for _, c := range []struct {
		room, freed, size int64 // MiB
		fits              bool
	}{{6, 0, 6, true}, {4, 0, 6, false}, {6, 4, 10, true}, {4, 4, 10, false}} {
		s := newTight(t, sim.New(0, sim.CostTable{}))
		mustMalloc(t, s, 8<<20, 0)
		last := mustMalloc(t, s, 4<<20, 0)
		main := s.heapOf(0).main
		s.regions[main].size = s.regions[main].end + c.room<<20
		if c.freed > 0 {
			if err := s.Free(last); err != nil {
				t.Fatal(err)
			}
		}
		p := mustMalloc(t, s, c.size<<20, 0)
		if got := s.heapOf(0).main == main; got != c.fits {
			t.Errorf("%+v: the main region is the same: %v", c, got)
		}
		if c.fits && c.freed > 0 && p != last {
			t.Errorf("%+v: the block is at %#x, not at %#x where memory is free", c, p, last)
		}
	}
}

// TestBareHeaps: new streams take over heaps that hold nothing, if there are many, and none that holds memory.
func TestBareHeaps(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	s.maxHeaps = 3
	kept := mustMalloc(t, s, 5<<20, 100)
	for stream := range cuda.Stream(20) {
		p := mustMalloc(t, s, 5<<20, stream)
		if err := errors.Join(s.Free(p), s.Empty()); err != nil {
			t.Fatal(err)
		}
		if want := min(int(stream)+2, s.maxHeaps); len(s.heaps) != want {
			t.Fatalf("%d heaps after %d streams, want %d", len(s.heaps), stream+2, want)
		}
	}
	if id, ok := s.byPtr.Get(kept); !ok || s.heaps[s.places[id].heap].stream != 100 {
		t.Error("the block of the first stream is no longer there")
	}
	mustMalloc(t, s, 5<<20, 20)
	mustMalloc(t, s, 5<<20, 21)
	mustMalloc(t, s, 5<<20, 22)
	if len(s.heaps) != 4 {
		t.Errorf("%d heaps of 4 streams that hold memory", len(s.heaps))
	}
}

// TestPiecesWithoutRegionKeepTheirHeap: a heap with idle pieces that are mapped nowhere is not taken over.
func TestPiecesWithoutRegionKeepTheirHeap(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	s.maxHeaps = 1
	if _, err := s.create(s.heapOf(7), 2<<20); err != nil {
		t.Fatal(err)
	}
	if s.heapOf(8).number == s.heapOf(7).number {
		t.Error("a heap with a piece was taken over")
	}
}

// TestForgetPlaces: places are forgotten once there are too many, apart from those of blocks in use. If most are in use, more are remembered.
func TestForgetPlaces(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	s.maxPlaces = 40
	var live []cuda.Ptr
	for i := range int64(30) {
		live = append(live, mustMalloc(t, s, (2+i)<<20, 0))
	}
	for i := range int64(400) {
		p := mustMalloc(t, s, 2<<20+i*512, 0)
		if err := s.Free(p); err != nil {
			t.Fatal(err)
		}
		if n := len(s.places) - len(s.gone); n > 60 {
			t.Fatalf("%d places are remembered", n)
		}
	}
	if s.maxPlaces != 60 || len(s.heapOf(0).classes) > 61 {
		t.Errorf("%d places may be remembered, of %d sizes", s.maxPlaces, len(s.heapOf(0).classes))
	}
	for i, p := range live {
		id, ok := s.byPtr.Get(p)
		if !ok || s.places[id].state != placeLive || s.places[id].size != (2+int64(i))<<20 {
			t.Fatalf("block %d is forgotten", i)
		}
		if err := s.Free(p); err != nil {
			t.Fatal(err)
		}
		if q := mustMalloc(t, s, (2+int64(i))<<20, 0); q != p {
			t.Errorf("block %d is at %#x, and was at %#x", i, q, p)
		}
	}
	for _, p := range live {
		if err := s.Free(p); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(100) {
		if err := s.Free(mustMalloc(t, s, 2<<20+i*512, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if s.maxPlaces != 60 {
		t.Errorf("with none in use, %d places may be remembered", s.maxPlaces)
	}
}

// TestUndoUnused waits for the device, and undoes the mappings of blocks that were freed last, too.
func TestUndoUnused(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	p := [3]cuda.Ptr{mustMalloc(t, s, 4<<20, 0), mustMalloc(t, s, 4<<20, 0), mustMalloc(t, s, 4<<20, 0)}
	if err := errors.Join(s.Free(p[0]), s.Free(p[2])); err != nil {
		t.Fatal(err)
	}
	stitched := mustMalloc(t, s, 8<<20, 0)
	before := s.mapped
	if err := s.Free(stitched); err != nil {
		t.Fatal(err)
	}
	if err := s.undoUnused(); err != nil || s.mapped >= before || len(s.plainUnused()) > 0 {
		t.Errorf("%d mappings of %d, %d of them unused; %v", s.mapped, before, len(s.plainUnused()), err)
	}
}

// TestEdgesAreLimited: of many pieces that are free at an end, the last ones are looked at.
func TestEdgesAreLimited(t *testing.T) {
	s := newTight(t, sim.New(0, sim.CostTable{}))
	var freed []cuda.Ptr
	for i := range 3 * lastEdged {
		if p := mustMalloc(t, s, 2<<20+int64(i*37%1024)<<10, 0); i%2 == 0 {
			freed = append(freed, p)
		}
	}
	for _, p := range freed {
		s.Free(p)
	}
	mustMalloc(t, s, 6<<20, 0) // what was freed is kept for requests of the same sizes until then
	edges := s.edgesOf(s.heapOf(0))
	if len(edges) > lastEdged || len(edges) < lastEdged/2 {
		t.Fatalf("%d pieces have a free end", len(edges))
	}
	if last := edges[len(edges)-1].piece; int(last) < len(s.pieces)-8 {
		t.Errorf("the last one is piece %d of %d", last, len(s.pieces))
	}
}
