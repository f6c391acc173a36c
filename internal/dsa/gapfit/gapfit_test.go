package gapfit_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/gapfit"
	"gm/internal/dsa/sections"
)

// plain places buffers in an order, each in a gap between those placed before that conflict with it: the lowest, or the smallest and of those the
// lowest. On top of them all if no gap holds it.
func plain(in *sections.Instance, order []int32, smallest bool, conflict func(i, k int32) bool) []int64 {
	out := make([]int64, in.Len())
	for n, k := range order {
		var others []int32
		for _, i := range order[:n] {
			if conflict(i, k) {
				others = append(others, i)
			}
		}
		slices.SortFunc(others, func(a, b int32) int { return cmp.Compare(out[a], out[b]) })
		floor, found, size := int64(0), int64(-1), int64(0)
		for _, i := range others {
			gap := out[i] - floor
			if better := found < 0 || smallest && gap < size; gap >= in.Size[k] && better {
				found, size = floor, gap
			}
			floor = max(floor, out[i]+in.Size[i])
		}
		if out[k] = found; found < 0 {
			out[k] = floor
		}
	}
	return out
}

// heights lists what a layout reaches buffer by buffer, where it reaches more.
func heights(in *sections.Instance, order []int32, out []int64) (all []int64) {
	for _, k := range order {
		if top := out[k] + in.Size[k]; len(all) == 0 || top > all[len(all)-1] {
			all = append(all, top)
		}
	}
	return all
}

// run is a method with its settings.
type run func(in *sections.Instance, stop sections.Stop, out []int64) (peak int64, ok bool)

// check compares offsets, the peak, and what stop is asked with a plain layout, and ends a layout at each of the heights.
func check(t *testing.T, in *sections.Instance, order []int32, want []int64, run run) {
	t.Helper()
	var asked []int64
	got, bounds := make([]int64, in.Len()), heights(in, order, want)
	peak, ok := run(in, func(peak int64) bool { asked = append(asked, peak); return false }, got)
	if !ok || !slices.Equal(got, want) {
		t.Fatalf("offsets %v, expected %v", got, want)
	}
	if !slices.Equal(asked, bounds) || peak != bounds[len(bounds)-1] {
		t.Fatalf("a peak of %d after %v, expected %v", peak, asked, bounds)
	}
	for i, last := range bounds {
		n := 0
		if peak, ok := run(in, func(peak int64) bool { n++; return peak >= last }, got); ok || peak != 0 || n != i+1 {
			t.Fatalf("%v, a peak of %d after %d questions, expected none after %d", ok, peak, n, i+1)
		}
	}
}

// crowd returns a problem of up to 60 buffers of few sizes, so that gaps are often as large.
func crowd(rng *rand.Rand) *dsa.Problem {
	p := &dsa.Problem{Align: 1}
	for range 1 + rng.IntN(60) {
		start := rng.Int64N(30)
		dsatest.Add(p, start, start+1+rng.Int64N(8), 1+rng.Int64N(6))
	}
	return p
}

// TestOnline places buffers as they are born, between those that live then.
func TestOnline(t *testing.T) {
	var online gapfit.Online
	for seed := range uint64(400) {
		in := sections.New(crowd(rand.New(rand.NewPCG(seed, 21))))
		order := make([]int32, in.Len())
		for k := range order {
			order[k] = int32(k)
		}
		want := plain(in, order, true, func(i, k int32) bool { return in.Hi[i] > in.Lo[k] })
		check(t, in, order, want, online.Run)
	}
}

// TestOrdered places buffers in random orders, between those with which they share a section.
func TestOrdered(t *testing.T) {
	var ordered gapfit.Ordered
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 22))
		in := sections.New(crowd(rng))
		order := make([]int32, in.Len())
		for k, i := range rng.Perm(in.Len()) {
			order[k] = int32(i)
		}
		backwards := slices.Clone(order)
		slices.Reverse(backwards)
		for _, smallest := range []bool{false, true} {
			want := plain(in, order, smallest, func(i, k int32) bool { return in.Lo[i] < in.Hi[k] && in.Lo[k] < in.Hi[i] })
			check(t, in, order, want, func(in *sections.Instance, stop sections.Stop, out []int64) (int64, bool) {
				return ordered.Run(in, backwards, smallest, stop, out)
			})
		}
	}
}

// TestStopIsAsked lays out buffers that do not raise the peak: stop is still asked, at each sections.StopEvery of them.
func TestStopIsAsked(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	var order []int32
	for i := range int32(2*sections.StopEvery + 1) {
		dsatest.Add(p, int64(i), int64(i)+1, 7)
		order = append(order, i)
	}
	in := sections.New(p)
	var online gapfit.Online
	var ordered gapfit.Ordered
	for name, run := range map[string]run{
		"online": online.Run,
		"ordered": func(in *sections.Instance, stop sections.Stop, out []int64) (int64, bool) {
			return ordered.Run(in, order, false, stop, out)
		},
	} {
		asked := 0
		peak, ok := run(in, func(peak int64) bool { asked++; return peak != 7 }, make([]int64, in.Len()))
		if !ok || peak != 7 || asked != 3 {
			t.Errorf("%s: %v, a peak of %d after %d questions, expected 7 after 3", name, ok, peak, asked)
		}
	}
}
