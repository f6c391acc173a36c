package blocks

import (
	"errors"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// elsewhere is an Outside that has some segments which are free, and notes the blocks that return.
type elsewhere struct {
	idle     []cuda.Ptr
	returned []cuda.Ptr
}

func (e *elsewhere) TakeIdle() cuda.Ptr {
	if len(e.idle) == 0 {
		return 0
	}
	p := e.idle[0]
	e.idle = e.idle[1:]
	return p
}

func (e *elsewhere) Return(p cuda.Ptr) { e.returned = append(e.returned, p) }

// served is a Stitch on a device of 16 MiB, whose small requests are served outside.
func served(t *testing.T) (*Stitch, *elsewhere, *sim.Device) {
	t.Helper()
	dev := sim.New(16<<20, sim.CostTable{})
	s, err := NewStitch(dev, tightConf())
	if err != nil {
		t.Fatal(err)
	}
	e := &elsewhere{}
	s.torch.ServeOutside(e)
	return s, e, dev
}

// segments takes segments for the Outside.
func (e *elsewhere) segments(t *testing.T, a interface{ OutsideSegment() (cuda.Ptr, error) }, n int) (all []cuda.Ptr) {
	t.Helper()
	for range n {
		p, err := a.OutsideSegment()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// TestOutsideSegment: on a full device a segment takes the place of a piece that is free, else of all that is free, and else there is none.
func TestOutsideSegment(t *testing.T) {
	s, e, _ := served(t)
	p, err := s.Malloc(4<<20, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Free(p); err != nil {
		t.Fatal(err)
	}
	segments := e.segments(t, s, 6)
	if got := s.Stats(); got.Reserved != 16<<20 || got.PeakReserved != 16<<20 || got.Retries != 0 {
		t.Fatalf("with 4 MiB free and 6 segments: %+v", got)
	}
	e.segments(t, s, 1) // one of two pieces yields
	if got := s.Stats(); got.Reserved != 16<<20 || got.Retries != 0 || s.Stats().Reserved-s.torch.Stats().Reserved != 2<<20 {
		t.Fatalf("with 7 segments: %+v", got)
	}
	e.idle = segments[:2] // not taken before the last piece is
	e.segments(t, s, 1)
	if got := s.Stats(); got.Reserved != 16<<20 || got.Retries != 0 || len(e.idle) != 2 {
		t.Fatalf("with 8 segments: %+v", got)
	}
	e.segments(t, s, 1)
	if got := s.Stats(); got.Reserved != 14<<20 || got.Retries != 1 || len(e.idle) != 0 {
		t.Fatalf("with 2 of 8 segments free: %+v", got)
	}
	e.segments(t, s, 1)
	if _, err := s.OutsideSegment(); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("on a device full of segments: %v", err)
	}
}

// TestOutsideSegmentEmpties: an allocator that gives nothing up piece by piece releases all that is free.
func TestOutsideSegmentEmpties(t *testing.T) {
	g, err := NewGMLake(sim.New(8<<20, sim.CostTable{}), DefaultGMLakeConf())
	if err != nil {
		t.Fatal(err)
	}
	g.torch.ServeOutside(&elsewhere{})
	p, err := g.Malloc(6<<20, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Free(p); err != nil {
		t.Fatal(err)
	}
	(&elsewhere{}).segments(t, g, 2)
	if got := g.Stats(); got.Reserved != 4<<20 || got.Retries != 1 || got.PeakReserved != 8<<20 {
		t.Errorf("%+v", got)
	}
}

// TestLendOutside: a block that streams have borrowed is pending from its free on, and returns once all of them are done with it.
func TestLendOutside(t *testing.T) {
	s, e, dev := served(t)
	a := s.torch
	process := func(want bool) {
		t.Helper()
		if any, err := a.ProcessOutside(); any != want || err != nil {
			t.Fatalf("blocks returned: %v, want %v; %v", any, want, err)
		}
	}
	for round := range 3 {
		e.returned = nil
		a.LendOutside(1000, 512, 5)
		a.LendOutside(1000, 512, 6)
		a.LendOutside(2000, 1024, 5)
		process(false)
		var events []cuda.Event
		for _, p := range []cuda.Ptr{1000, 2000} {
			events = append(events, dev.Hold(func() {
				if err := a.FreeOutside(p); err != nil {
					t.Fatal(err)
				}
			})...)
		}
		if err := a.FreeOutside(1000); err == nil {
			t.Error("a second free: no error")
		}
		if small, large := s.Pending(); len(events) != 3 || small != 1536 || large != 0 {
			t.Fatalf("%d events, %d and %d bytes are pending", len(events), small, large)
		}
		process(false)
		dev.Complete(events[:1])
		process(false)
		dev.Complete(events[1:2])
		process(true)
		if len(e.returned) != 1 || e.returned[0] != 1000 {
			t.Fatalf("returned: %v", e.returned)
		}
		process(false)
		dev.Complete(events[2:])
		process(true)
		if small, _ := s.Pending(); small != 0 || len(e.returned) != 2 || len(a.outside.lent) != 2 {
			t.Fatalf("round %d: returned: %v, %d bytes are pending, %d blocks are known", round, e.returned, small, len(a.outside.lent))
		}
	}
}

// TestCaptureOutside: during a capture no event is recorded for blocks outside, and they return after it.
func TestCaptureOutside(t *testing.T) {
	s, e, dev := served(t)
	if err := s.Capture(true); err != nil {
		t.Fatal(err)
	}
	s.torch.LendOutside(1000, 512, 5)
	if err := s.torch.FreeOutside(1000); err != nil {
		t.Fatal(err)
	}
	if n := dev.Calls(sim.EventRecord); n != 0 {
		t.Errorf("%d events are recorded in a capture", n)
	}
	if err := s.Capture(false); err != nil {
		t.Fatal(err)
	}
	if n := dev.Calls(sim.EventRecord); n != 1 {
		t.Errorf("%d events are recorded at the end of the capture", n)
	}
	if any, err := s.torch.ProcessOutside(); !any || err != nil || len(e.returned) != 1 {
		t.Errorf("after it returned %v; %v", e.returned, err)
	}
}

// TestAllocatedOutside: what is handed out outside counts, and the most that it was in between.
func TestAllocatedOutside(t *testing.T) {
	s, _, _ := served(t)
	if _, err := s.Malloc(2<<20, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ now, most, allocated, peak int64 }{
		{1000, 1000, 1000, 1000}, {1000, 1000, 1000, 1000}, {1000, 5000, 1000, 5000}, {500, 500, 500, 5000}, {6000, 6000, 6000, 6000}, {0, 7000, 0, 7000},
	} {
		s.SetAllocatedOutside(c.now, c.most)
		if got := s.Stats(); got.Allocated != 2<<20+c.allocated || got.PeakAllocated != 2<<20+c.peak || s.Allocated() != got.Allocated {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestKept: blocks of one stream that no other uses may stay outside when they are freed, in the order in which they were first used.
func TestKept(t *testing.T) {
	s, _, dev := served(t)
	malloc := func(size int64, stream cuda.Stream) cuda.Ptr {
		t.Helper()
		p, err := s.Malloc(size, stream, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var blocks []cuda.Ptr
	for range 3 {
		blocks = append(blocks, malloc(2<<20, 0))
	}
	for i, p := range blocks {
		if got := s.Rank(p, 2<<20); got != int32(i) {
			t.Errorf("block %d has rank %d", i, got)
		}
		if got := max(s.Rank(p, 4<<20), s.Rank(p+512, 2<<20)); got != -1 {
			t.Errorf("no such block has rank %d", got)
		}
	}
	if !s.Keepable() {
		t.Error("blocks of the only stream may not stay outside")
	}
	before := s.Stats().Allocated
	if err := s.FreeKept(blocks[0]); err != nil || s.Stats().Allocated != before || s.Rank(blocks[0], 2<<20) != -1 {
		t.Errorf("a block freed outside: %v, %d bytes allocated of %d, rank %d", err, s.Stats().Allocated, before, s.Rank(blocks[0], 2<<20))
	}
	if err := s.RecordStream(blocks[1], 4); err != nil || s.Rank(blocks[1], 2<<20) != -1 {
		t.Errorf("a block that was lent has rank %d; %v", s.Rank(blocks[1], 2<<20), err)
	}
	events := dev.Hold(func() {
		if err := s.Free(blocks[1]); err != nil {
			t.Fatal(err)
		}
	})
	if s.Rank(blocks[1], 2<<20) != -1 || s.Keepable() {
		t.Error("a block that waits for a stream may stay outside")
	}
	dev.Complete(events)
	malloc(3<<20, 0)
	if !s.Keepable() {
		t.Error("after that no block may stay outside")
	}
	malloc(2<<20, 1)
	if s.Keepable() {
		t.Error("with two streams blocks may stay outside")
	}
}
