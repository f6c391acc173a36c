package planner

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/dsa"
)

// played is a solver that finds layouts of some peaks, one each second, and needs ten minutes to prove the last one.
type played struct {
	peaks []int64
	bound int64
}

func (s played) Solve(ctx context.Context, _ *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	var found dsa.Layout
	for _, peak := range append(s.peaks, 0) {
		wait := time.Second
		if peak == 0 {
			wait = 10 * time.Minute
		}
		select {
		case <-ctx.Done():
			if found.Peak == 0 {
				return found, errors.New("no layout")
			}
			return found, nil
		case <-time.After(wait):
		}
		if peak > 0 {
			found.Peak = peak
			o.Progress(dsa.Progress{Peak: peak, Bound: s.bound})
		}
	}
	return found, nil
}

func TestNear(t *testing.T) {
	for _, test := range []struct {
		peaks []int64
		spare float64
		want  int64
		after time.Duration
	}{
		{[]int64{1001, 999}, 0, 1001, nearTime},              // there is time for the first
		{[]int64{1010, 1000}, 0, 1010, nearTime},             // a hundredth above the bound
		{[]int64{1011, 1001, 999}, 0, 1001, 2 * time.Second}, // the first that is near enough
		{[]int64{1100, 1090, 1080, 1009, 1001}, 0, 1009, 4 * time.Second},
		{[]int64{1100, 1090}, 0, 1090, 5 * time.Second},    // none is
		{[]int64{1010, 1001}, 0.02, 1010, time.Second},     // half of the room stays free
		{[]int64{1070, 1040}, 0.06, 1040, 2 * time.Second}, // the first that has room
		{[]int64{1040, 1035}, 0.06, 1040, nearTime},        // likewise
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), layoutTime)
			defer cancel()
			began := time.Now()
			got, err := near{played{test.peaks, 1000}, test.spare}.Solve(ctx, nil, dsa.Options{})
			if took := time.Since(began); err != nil || got.Peak != test.want || took != test.after {
				t.Errorf("%v: got %d, %v after %v, want %d after %v", test.peaks, got.Peak, err, took, test.want, test.after)
			}
		})
	}
}

// TestSpare holds what the requests of random iterations take against a count, request by request, over two of them.
func TestSpare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		iteration := make([]blocks.Request, 1+r.IntN(12))
		n := len(iteration)
		for i := range iteration {
			iteration[i] = blocks.Request{Size: 1 + r.Int64N(100), Stream: cuda.Stream(r.IntN(2)), Lasts: int32(r.IntN(n + 2))}
		}
		want := map[cuda.Stream]int64{}
		for now := n; now < 2*n; now++ {
			load := map[cuda.Stream]int64{}
			for i := 0; i <= now; i++ {
				if q := iteration[i%n]; int(q.Lasts) <= n && i+int(q.Lasts) > now {
					load[q.Stream] += q.Size
				}
			}
			for stream, bytes := range load {
				want[stream] = max(want[stream], bytes)
			}
		}
		if got := peaks(iteration); !maps.Equal(got, want) {
			t.Fatalf("%+v: got %v, want %v", iteration, got, want)
		}
		total := want[0] + want[1]
		if got := spare(3*total/2, iteration); total > 0 && math.Abs(got-0.5) > 0.51/float64(total) || spare(total-1, iteration) != 0 {
			t.Fatalf("%+v: %g of %d bytes are spare", iteration, got, total)
		}
	}
}
