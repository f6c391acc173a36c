package blocks

import (
	"errors"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// waited is a device that counts how often a stream was waited for.
type waited struct {
	*sim.Device
	times int
}

func (w *waited) StreamSynchronize(s cuda.Stream) error {
	w.times++
	return w.Device.StreamSynchronize(s)
}

// fullStitch returns an allocator that has taken all of a device of 512 MiB, in blocks of 32 MiB that are freed but for the first kept ones.
func fullStitch(t *testing.T, kept int) (*Stitch, *waited) {
	t.Helper()
	dev := &waited{Device: sim.New(512<<20, sim.H200())}
	s, err := NewStitch(dev, DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	var blocks []cuda.Ptr
	for range 16 {
		p, err := s.Malloc(32<<20, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, p)
	}
	for _, p := range blocks[kept:] {
		if err := s.Free(p); err != nil {
			t.Fatal(err)
		}
	}
	return s, dev
}

// TestYield has a small request at a full device take a piece, and not all that is free.
func TestYield(t *testing.T) {
	s, _ := fullStitch(t, 2)
	before := s.Stats()
	if _, err := s.Malloc(1000, 0, 0); err != nil {
		t.Fatal(err)
	}
	after := s.Stats()
	if after.Retries != before.Retries || after.Reserved > 512<<20 || after.Reserved < 512<<20-2*s.conf.PieceMax {
		t.Errorf("a small request: %+v, and %+v before", after, before)
	}
	if _, err := s.Malloc(400<<20, 0, 0); err != nil {
		t.Errorf("what is left of the device: %v", err)
	}
}

// TestHasty has hasty requests fail that find no room, at once, and be served when there is some.
func TestHasty(t *testing.T) {
	for _, c := range []struct {
		name  string
		kept  int
		size  int64
		fails bool
	}{
		{"large, room", 8, 256 << 20, false},
		{"large, no room", 8, 257 << 20, true},
		{"small, an idle piece", 15, 1000, false},
		{"small, no room", 16, 1000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dev := fullStitch(t, c.kept)
			before, waits := s.Stats(), dev.times
			s.SetHasty(true)
			p, err := s.Malloc(c.size, 0, 0)
			if c.fails != errors.Is(err, cuda.ErrOutOfMemory) || !c.fails && err != nil {
				t.Fatalf("address %#x: %v", p, err)
			}
			if after := s.Stats(); after.Retries != before.Retries || c.fails && (after.Reserved != before.Reserved || dev.times != waits) {
				t.Errorf("%+v, and %+v before", after, before)
			}
		})
	}
}

// TestYieldTakesWhatIsNeeded: no more pieces are released than asked for, the smallest first, and a stream is waited for only where the device is
// not known to be done with enough.
func TestYieldTakesWhatIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name        string
		asked       int64 // pieces of 2 MiB
		kept        int64 // blocks of 2 MiB that are in use, of 8
		busy        bool  // the device is not done
		gone, times int64
	}{
		{"one piece", 1, 0, false, 1, 0},
		{"several", 3, 2, false, 3, 0},
		{"more than there are", 5, 6, false, 2, 0},
		{"none", 1, 8, false, 0, 0},
		{"the device is not done", 1, 0, true, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := &waited{Device: sim.New(0, sim.H200())}
			s, err := NewStitch(dev, StitchConf{PieceMin: 2 << 20, PieceMax: 4 << 20, Pieces: 1 << 20, Parts: 1, Aliases: 4})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Malloc(4<<20, 0, 0); err != nil { // stays
				t.Fatal(err)
			}
			larger, err := s.Malloc(4<<20, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var blocks []cuda.Ptr
			for range 8 {
				p, err := s.Malloc(2<<20, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, p)
			}
			for _, p := range blocks[c.kept:] {
				if err := s.Free(p); err != nil {
					t.Fatal(err)
				}
			}
			if c.kept == 8 || c.asked < 4 {
				larger = 0 // in use
			}
			if err := s.Free(larger); err != nil {
				t.Fatal(err)
			}
			before := s.Stats().Reserved
			if c.busy {
				dev.Hold(func() { err = s.yield(c.asked * 2 << 20) })
			} else {
				err = s.yield(c.asked * 2 << 20)
			}
			want := c.gone * 2 << 20
			if larger != 0 {
				want += 4 << 20
			}
			if gone := before - s.Stats().Reserved; err != nil || gone != want || int64(dev.times) != c.times {
				t.Errorf("%d bytes are gone, want %d; %d waits, want %d; %v", gone, want, dev.times, c.times, err)
			}
		})
	}
}
