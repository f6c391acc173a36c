package planner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
		want  int64
		after time.Duration
	}{
		{[]int64{1000, 999}, 1000, nearTime},              // there is time for the first
		{[]int64{1010, 1000}, 1010, nearTime},             // a hundredth above the bound
		{[]int64{1011, 1000, 999}, 1000, 2 * time.Second}, // the first that is near enough
		{[]int64{1100, 1090, 1080, 1009, 1000}, 1009, 4 * time.Second},
		{[]int64{1100, 1090}, 1090, 5 * time.Second}, // none is
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), layoutTime)
			defer cancel()
			began := time.Now()
			got, err := near{played{test.peaks, 1000}}.Solve(ctx, nil, dsa.Options{})
			if took := time.Since(began); err != nil || got.Peak != test.want || took != test.after {
				t.Errorf("%v: got %d, %v after %v, want %d after %v", test.peaks, got.Peak, err, took, test.want, test.after)
			}
		})
	}
}
