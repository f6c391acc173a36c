package policy

import (
	"math"
	"testing"
	"time"

	"gm/internal/swap"
)

// TestLowerBound compares with bounds by hand. In a stack of five convolutions each operator takes 100 ns, and copies 1 ns a byte. The
// sixth operator, which begins at 500 ns when nothing waits, finds five tensors there and uses two.
func TestLowerBound(t *testing.T) {
	for _, test := range []struct {
		bytes, device, host int64
		again               time.Duration // 0: cannot be recomputed
		want                time.Duration
		ok                  bool
	}{
		{bytes: 1000, device: 5000, host: math.MaxInt64, again: 100, want: 1000, ok: true},
		// Of one tensor 273 bytes are copied back beside two operators, and the rest is recomputed while they are, in 73 ns.
		{bytes: 1000, device: 4000, host: math.MaxInt64, again: 100, want: 500 + 100 + 200 + 273, ok: true},
		// It is written at 100 ns and gone 1000 ns later, then there is the operator, 1000 ns to come back, and the two that need it.
		{bytes: 1000, device: 4000, host: math.MaxInt64, again: 0, want: 100 + 1000 + 100 + 1000 + 200, ok: true},
		// Copies of 100 bytes are hidden.
		{bytes: 100, device: 400, host: math.MaxInt64, again: 0, want: 1000, ok: true},
		// The host has no room for one; a convolution takes two on the device.
		{bytes: 1000, device: 4000, host: 999, again: 0},
		{bytes: 1000, device: 1999, host: math.MaxInt64, again: 100},
	} {
		g := stack("ccccc", 100, test.bytes)
		for i := range g.Tensors {
			g.Tensors[i].Recompute = test.again
		}
		got, ok := LowerBound(g, swap.Limits{Device: test.device, Host: test.host, Link: perByte{}})
		// What is divided in so many parts, and times that are cut, leave a little less.
		if ok != test.ok || got > test.want || float64(got) < 0.98*float64(test.want) {
			t.Errorf("%+v: %v %v", test, got, ok)
		}
	}
}

// TestLowerBoundOfLeast has a schedule in what the largest operator takes, and none in less.
func TestLowerBoundOfLeast(t *testing.T) {
	g := stack("ccccc", 100, 1000)
	for device, want := range map[int64]bool{g.Least(): true, g.Least() - 1: false} {
		if _, ok := LowerBound(g, swapLimits(device)); ok != want {
			t.Errorf("%d bytes: %v", device, ok)
		}
	}
}

// TestMovedBound has three tensors of which one is used at a time, over and over, in room for two.
func TestMovedBound(t *testing.T) {
	g := &swap.Graph{}
	for range 12 {
		g.Ops = append(g.Ops, swap.Op{})
	}
	for i := range int32(3) {
		x := swap.Tensor{Bytes: 10, Made: i}
		for op := i + 3; op < 12; op += 3 {
			x.Uses = append(x.Uses, op)
		}
		g.Tensors = append(g.Tensors, x)
	}
	// Every other operator, from the fourth on, one of them has to come back; belady's policy does no more.
	for device, want := range map[int64]int64{30: 0, 20: 40} {
		s, err := planBelady(newProblem(g, swap.Limits{Device: device, Host: math.MaxInt64, Link: perByte{}}))
		if err != nil {
			t.Fatal(err)
		}
		back := broughtBack(g, &swap.Schedule{Actions: s})
		if got := movedBound(g, device); got != want || back != want {
			t.Errorf("in %d bytes: the bound is %d and belady brings %d back, want %d", device, got, back, want)
		}
	}
}

// TestMayRecomputeOne has one tensor too many, which is computed again in 1000 ns.
func TestMayRecomputeOne(t *testing.T) {
	g := stack("ccccc", 100, 1000)
	for i := range g.Tensors {
		g.Tensors[i].Recompute = 1000
	}
	p := newProblem(g, swapLimits(4000))
	for most, want := range map[time.Duration]bool{g.Compute(): false, g.Compute() + 999: false, g.Compute() + 1000: true} {
		if got := p.mayRecompute(most); got != want {
			t.Errorf("in %v: %v", most, got)
		}
	}
}
