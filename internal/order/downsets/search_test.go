package downsets

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
)

// TestLeast compares the search with all orders of small problems, and of windows of them.
func TestLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		p := ordertest.Random(rng, 1+rng.IntN(8))
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		l := order.Link(p)
		program := order.Program(p.Ops())
		want := ordertest.Least(l)
		got, result := Search(context.Background(), l, program, 0, p.Ops(), Limits{Below: math.MaxInt64, States: 1 << 20})
		if result != Found {
			t.Fatalf("problem %d: result %d", i, result)
		}
		if err := l.Check(got); err != nil {
			t.Fatalf("problem %d: %v", i, err)
		}
		if peak, _ := order.Peak(l.Loads(got)); peak != want {
			t.Errorf("problem %d: peak %d, the least is %d: %+v", i, peak, want, p)
		}
		if _, result := Search(context.Background(), l, program, 0, p.Ops(), Limits{Below: want, States: 1 << 20}); result != None {
			t.Errorf("problem %d: a peak below the least: result %d", i, result)
		}
	}
}

// TestWindow reorders a stretch: the rest of the order and of the loads stay.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	better := 0
	for i := range 500 {
		p := ordertest.Random(rng, 30)
		l := order.Link(p)
		whole := order.Program(30)
		before := l.Loads(whole)
		from := rng.IntN(20)
		to := from + 1 + rng.IntN(30-from)
		window, result := Search(context.Background(), l, whole, from, to, Limits{Below: math.MaxInt64, States: 1 << 16})
		if result == GaveUp {
			continue
		}
		copy(whole[from:to], window)
		if err := l.Check(whole); err != nil {
			t.Fatalf("problem %d: %v", i, err)
		}
		after := l.Loads(whole)
		peak, _ := order.Peak(before[from:to])
		now, _ := order.Peak(after[from:to])
		if now > peak {
			t.Errorf("problem %d: places %d to %d took %d, now %d", i, from, to, peak, now)
		}
		if now < peak {
			better++
		}
		for place, load := range after {
			if (place < from || place >= to) && load != before[place] {
				t.Errorf("problem %d: place %d outside of %d to %d took %d, now %d", i, place, from, to, before[place], load)
			}
		}
	}
	if better < 50 {
		t.Errorf("only %d of 500 windows became better", better)
	}
}

func TestGaveUp(t *testing.T) {
	p := ordertest.Random(rand.New(rand.NewPCG(5, 6)), 40)
	l := order.Link(p)
	if _, result := Search(context.Background(), l, order.Program(40), 0, 40, Limits{Below: math.MaxInt64, States: 3}); result != GaveUp {
		t.Errorf("result %d with 3 states", result)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, result := Search(ctx, l, order.Program(40), 0, 40, Limits{Below: math.MaxInt64, States: 1 << 20}); result != GaveUp {
		t.Errorf("result %d of a search that was ended", result)
	}
}
