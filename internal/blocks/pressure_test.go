package blocks

import (
	"errors"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestCacheMakesRoom fills a device with a large block and frees it: small requests, and those of another stream, must then get
// all of it.
func TestCacheMakesRoom(t *testing.T) {
	for _, spec := range candidates(t) {
		t.Run(spec.Text, func(t *testing.T) {
			a := spec.open(t, sim.New(64<<20, sim.H200()))
			malloc := func(size int64, stream cuda.Stream) cuda.Ptr {
				t.Helper()
				p, err := a.Malloc(size, stream, 0)
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				return p
			}
			free := func(p cuda.Ptr) {
				t.Helper()
				if err := a.Free(p); err != nil {
					t.Fatal(err)
				}
			}
			free(malloc(58<<20, 0))
			var small []cuda.Ptr
			for range 25 {
				small = append(small, malloc(1<<20, 0))
			}
			for _, p := range small {
				free(p)
			}
			free(malloc(50<<20, 1))
			malloc(50<<20, 0)
			_, err := a.Malloc(50<<20, 0, 0)
			var oom *OOMError
			if !errors.As(err, &oom) || oom.Allocated < 50<<20 || oom.Reserved < oom.Allocated {
				t.Errorf("error %v, of %+v", err, oom)
			}
		})
	}
}

// failing is a device on which one kind of call fails.
type failing struct {
	*sim.Device
	noEvents bool // EventRecord fails
	failMaps int  // the Map that fails, counted from 1
}

var errBroken = errors.New("broken")

func (f *failing) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if f.noEvents {
		return 0, errBroken
	}
	return f.Device.EventRecord(s)
}

func (f *failing) Map(p cuda.Ptr, h cuda.Handle) error {
	if f.failMaps--; f.failMaps == 0 {
		return errBroken
	}
	return f.Device.Map(p, h)
}

// TestUnrecordedEventKeepsMemory: a block is not reused before events were recorded in all of the streams that it waits for.
func TestUnrecordedEventKeepsMemory(t *testing.T) {
	dev := &failing{Device: sim.New(0, sim.H200())}
	a, err := NewTorch(dev, allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Malloc(30<<20, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for stream := range cuda.Stream(2) {
		if err := a.RecordStream(p, stream+1); err != nil {
			t.Fatal(err)
		}
	}
	dev.noEvents = true
	if err := a.Free(p); !errors.Is(err, errBroken) {
		t.Fatalf("free: %v", err)
	}
	if _, err := a.Malloc(30<<20, 0, 0); !errors.Is(err, errBroken) {
		t.Errorf("then: %v", err)
	}
	dev.noEvents = false
	if q, err := a.Malloc(30<<20, 0, 0); err != nil || q != p {
		t.Errorf("at last %#x, %v; the block was at %#x", q, err, p)
	}
}

// TestFailedMapLeaksNothing: memory that was taken before a mapping failed is released.
func TestFailedMapLeaksNothing(t *testing.T) {
	for _, spec := range candidates(t) {
		for fail := 1; fail <= 4; fail++ {
			dev := &failing{Device: sim.New(0, sim.H200()), failMaps: fail}
			a := spec.open(t, dev)
			if _, err := a.Malloc(80<<20, 0, 0); err != nil && !errors.Is(err, errBroken) {
				t.Errorf("%s, map %d: error %v", spec.Text, fail, err)
			}
			if dev.Used() != a.Stats().Reserved {
				t.Errorf("%s, map %d: %d bytes taken, %d reserved", spec.Text, fail, dev.Used(), a.Stats().Reserved)
			}
		}
	}
}

// TestExpandableLeftAlone: with expandable_segments off, the segments that remain serve no request.
func TestExpandableLeftAlone(t *testing.T) {
	a, err := NewTorch(sim.New(0, sim.H200()), allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Restore([]Segment{{Addr: 1 << 40, Size: 40 << 20, Expandable: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Malloc(30<<20, 0, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := a.Stats().Reserved, int64(70<<20); got != want {
		t.Errorf("%d bytes reserved, want %d", got, want)
	}
}

// TestSplitSegmentsStay: to make room for an oversize request only whole segments are released.
func TestSplitSegmentsStay(t *testing.T) {
	conf, err := allocconf.Parse("max_split_size_mb:20,large_segment_size_mb:64")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewTorch(sim.New(128<<20, sim.H200()), conf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Malloc(5<<20, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Malloc(100<<20, 0, 0); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("error %v, want out of memory", err)
	}
}
