package canonical

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/pairs"
	"gm/internal/dsa/sections"
	"gm/internal/models/layouts"
)

// TestLeastPeak compares with branch and bound on pairs, which is compared with brute force: least peaks, and what is proven of the height below.
func TestLeastPeak(t *testing.T) {
	above := 0
	for seed := range uint64(6000) {
		p := layouts.Crowded(14, seed)
		p.Align = 1 + int64(seed%2)
		want, err := pairs.Solver{}.Solve(t.Context(), p, dsa.Options{})
		if err != nil || !want.Optimal() {
			t.Fatalf("seed %d: peak %d, bound %d: %v", seed, want.Peak, want.Bound, err)
		}
		if want.Peak > dsatest.Load(p) {
			above++
		}
		l, err := Solver{Nodes: 1 << 30}.Solve(t.Context(), p, dsa.Options{})
		if err == nil {
			err = dsa.Check(p, l)
		}
		if err != nil || l.Peak != want.Peak || !l.Optimal() {
			t.Fatalf("seed %d: peak %d, bound %d, expected %d: %v", seed, l.Peak, l.Bound, want.Peak, err)
		}
		for _, capacity := range []int64{want.Peak - p.Align, want.Peak} {
			l, err = Solver{Nodes: 1 << 30}.Solve(t.Context(), p, dsa.Options{Capacity: capacity})
			if err != nil || (l.Peak <= capacity) != (capacity == want.Peak) || (l.Bound > capacity) != (capacity < want.Peak) {
				t.Fatalf("seed %d, capacity %d of %d: peak %d, bound %d, %v", seed, capacity, want.Peak, l.Peak, l.Bound, err)
			}
		}
	}
	if above == 0 {
		t.Error("no problem needs more than its load")
	}
}

// TestRank orders three buffers by each letter of the keys.
func TestRank(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	dsatest.Add(p, 0, 10, 2) // the longest
	dsatest.Add(p, 1, 6, 9)  // the greatest area
	dsatest.Add(p, 7, 9, 10) // the highest load, 12, of which the longest has a share
	for by, want := range map[sections.Key][]int32{"WAT": {0, 1, 2}, "AWT": {1, 0, 2}, "TAW": {0, 2, 1}, "TWA": {0, 2, 1}} {
		s := New(sections.New(p))
		s.attempt.By = by
		s.reset(12)
		order := []int32{2, 1, 0}
		s.rank(order)
		for k := range order {
			order[k] = s.state.in.ID[order[k]]
		}
		if !slices.Equal(order, want) {
			t.Errorf("%s: %v, expected %v", by, order, want)
		}
	}
}

// TestNodes stops after a number of nodes, and when it is cancelled.
func TestNodes(t *testing.T) {
	p := layouts.Packed(300, 100_000, 1000, 0)
	l, err := Solver{Nodes: 1000}.Solve(t.Context(), p, dsa.Options{})
	if err != nil || dsa.Check(p, l) != nil || l.Bound != dsatest.Load(p) || l.Optimal() {
		t.Errorf("peak %d, bound %d: %v, %v", l.Peak, l.Bound, err, dsa.Check(p, l))
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if l, err = (Solver{}).Solve(late, p, dsa.Options{}); err != nil || dsa.Check(p, l) != nil || l.Method != "skyline-A" {
		t.Errorf("no time: %s, %v, %v", l.Method, err, dsa.Check(p, l))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Solver{}).Solve(ctx, p, dsa.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	many := &dsa.Problem{Align: 1}
	for i := range int64(MostBuffers + 1) {
		dsatest.Add(many, i, i+1, 1)
	}
	if _, err := (Solver{}).Solve(t.Context(), many, dsa.Options{}); !errors.Is(err, dsa.ErrInvalid) {
		t.Errorf("too many buffers: error %v", err)
	}
}
