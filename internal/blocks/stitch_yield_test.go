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
