package bench

import (
	"context"
	"testing"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// late takes the driver's calls before a request, counted from 0.
type late struct {
	*blocks.Stitch
	dev            *sim.Device
	from, requests int
	before         int64
}

func (l *late) Malloc(size int64, stream cuda.Stream, pool blocks.Pool) (cuda.Ptr, error) {
	if l.requests == l.from {
		l.before = l.dev.MemoryCalls()
	}
	l.requests++
	return l.Stitch.Malloc(size, stream, pool)
}

// TestSettles has a job that gmswap serves repeat an iteration, on a device with a thirty-second more memory than is in use then. After
// ten iterations stitch has found a place for each request and calls the driver no more. Jobs of other sizes may not come to that.
func TestSettles(t *testing.T) {
	const (
		lo, hi    = 33900, 36380 // the requests of an iteration
		most      = 8_753_000_000
		times     = 16
		unsettled = 10
	)
	programs, err := replay.Open("../../testdata/swapped/vit-8.9GB.parquet")
	if err != nil {
		t.Fatal(err)
	}
	p, err := programs[0].Repeat(lo, hi, times)
	if err != nil {
		t.Fatal(err)
	}
	dev := sim.New(most+most/32, sim.H200())
	s, err := blocks.NewStitch(dev, blocks.DefaultStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	l := &late{Stitch: s, dev: dev, from: lo + unsettled*(hi-lo)}
	if _, err := replay.Run(context.Background(), p, l, dev); err != nil {
		t.Fatal(err)
	}
	if want := lo + times*(hi-lo); l.requests < want {
		t.Fatalf("request %d of %d finds no memory", l.requests, want)
	}
	if calls := dev.MemoryCalls() - l.before; calls > 0 {
		t.Errorf("%d calls of the driver after iteration %d", calls, unsettled)
	}
}
