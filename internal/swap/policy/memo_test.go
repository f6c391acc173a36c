package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestLayers has the operators of layers: those of a layer that does not run in both passes, of none, and of the update do not count.
func TestLayers(t *testing.T) {
	g := &swap.Graph{}
	add := func(layer int32, phase swap.Phase, took time.Duration) {
		g.Ops = append(g.Ops, swap.Op{Layer: layer, Phase: phase, Duration: took})
	}
	add(-1, swap.Forward, 1)
	add(7, swap.Forward, 2) // 1
	add(7, swap.Forward, 4)
	add(3, swap.Forward, 8) // 3
	add(-1, swap.Forward, 16)
	add(3, swap.Forward, 32) // 5
	add(4, swap.Forward, 64) // has no backward pass
	add(-1, swap.Backward, 1)
	add(3, swap.Backward, 1) // 8
	add(3, swap.Backward, 1)
	add(7, swap.Backward, 1)  // 10
	add(9, swap.Backward, 1)  // has no forward pass
	add(7, swap.Backward, 1)  // 12
	add(7, swap.Update, 1)    // 13
	add(-1, swap.Backward, 1) // 14
	want := []layer{
		{number: 7, forward: 1, forwardEnd: 3, backward: 10, behindEnd: 13, took: 6},
		{number: 3, forward: 3, forwardEnd: 6, backward: 8, behindEnd: 10, took: 40},
	}
	if got := newProblem(g, swapLimits(0)).layers(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestMemoRows copies whole rows, or all of what has none where all rows are copied, or where it has to be.
func TestMemoRows(t *testing.T) {
	for _, test := range []struct {
		row   int64
		whole bool
		part  float64
		want  int64
	}{
		{0, false, 0.5, 0}, {0, false, 1, 100}, {0, true, 0, 100},
		{10, false, 0.5, 50}, {10, false, 0.59, 50}, {10, false, 0, 0}, {10, true, 0.5, 100}, {30, false, 1, 100},
	} {
		g := stack("cc", 1, 100)
		g.Tensors[0].Row = test.row
		m := &memo{problem: newProblem(g, swapLimits(0))}
		if got := m.rows(share{whole: test.whole}, test.part); got != test.want {
			t.Errorf("%+v: %d bytes", test, got)
		}
	}
}

// TestMemoWithin copies no part of the rows that takes longer than the layer's forward pass, or more of the host than there is. The first of
// three layers has the only tensor, of 100 rows.
func TestMemoWithin(t *testing.T) {
	for _, test := range []struct {
		took  time.Duration
		host  int64
		part  float64
		want  bool
		whole float64 // what fraction finds
	}{
		{100, math.MaxInt64, 1, true, 1},
		{99, math.MaxInt64, 1, false, 0.99},
		{50, math.MaxInt64, 0.5, true, 0.5},
		{50, math.MaxInt64, 0.51, false, 0.5},
		{100, 50, 0.5, true, 0.5},
		{100, 50, 0.51, false, 0.5},
		{0, 50, 0, true, 0},
	} {
		g := stack("ccc", test.took, 100)
		g.Tensors[0].Row = 1
		m := newMemo(newProblem(g, swap.Limits{Device: math.MaxInt64, Host: test.host, Link: perByte{}}))
		m.share = [][]share{{{}}}
		if got := m.within(test.part); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if got := m.fraction(); math.Abs(got-test.whole) > 0.01 || int64(100*got) > int64(100*test.whole) {
			t.Errorf("%+v: a fraction of %g", test, got)
		}
	}
}

// TestMemoCollects moves inputs of layers and what attention writes, and other tensors that can be recomputed from what is there then: not those
// that need one of a layer before theirs.
func TestMemoCollects(t *testing.T) {
	for name, test := range map[string]struct {
		change func(g *swap.Graph)
		want   []int32 // tensors moved; of five layers the last two stay
	}{
		"chain":                    {func(*swap.Graph) {}, []int32{0, 2}}, // 1 needs 0, which comes back later; 2 needs 1, which is there
		"inputs":                   {func(g *swap.Graph) { setRoles(g, swap.LayerInput) }, []int32{0, 1, 2}},
		"all without sources":      {func(g *swap.Graph) { g.Tensors[1].From, g.Tensors[2].From = nil, nil }, []int32{0, 1, 2}},
		"one cannot be recomputed": {func(g *swap.Graph) { g.Tensors[0].Recompute = 0 }, []int32{1}},
		"of a later layer":         {func(g *swap.Graph) { g.Tensors[0].Layer = 2; g.Tensors[1].Layer = 0 }, []int32{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := stack("ccccc", 100, 100)
			test.change(g)
			m := newMemo(newProblem(g, swapLimits(math.MaxInt64)))
			var got []int32
			for i, shares := range m.share {
				for _, s := range shares {
					if got = append(got, s.Tensor); g.Tensors[s.Tensor].Layer != int32(i) || s.whole != (g.Tensors[s.Tensor].Role != swap.Inner) {
						t.Errorf("tensor %d goes with layer %d, whole: %v", s.Tensor, i, s.whole)
					}
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("moved %v, want %v", got, test.want)
			}
		})
	}
}

func setRoles(g *swap.Graph, role swap.Role) {
	for i := range g.Tensors {
		g.Tensors[i].Role = role
	}
}

// TestMemoOfFewLayers moves nothing: the last two layers stay.
func TestMemoOfFewLayers(t *testing.T) {
	for _, types := range []string{"c", "cc"} {
		g := stack(types, 100, 100)
		setRoles(g, swap.LayerInput)
		if actions, err := planMemo(newProblem(g, swapLimits(math.MaxInt64))); err != nil || len(actions) > 0 {
			t.Errorf("%s: %s, %v", types, show(g, actions), err)
		}
	}
}

// TestLookupMemo takes parts from 0 to 1.
func TestLookupMemo(t *testing.T) {
	for name, want := range map[string]bool{
		"memo=0": true, "memo=0.5": true, "memo=1": true, "memo=1.01": false, "memo=-0.1": false, "memo=NaN": false, "memo=x": false,
	} {
		if p, err := Lookup(name); (err == nil) != want || want && p.Name != name {
			t.Errorf("%s: %q, %v", name, p.Name, err)
		}
	}
}

// TestMemoTrips has layers of one operator: a tensor's copy begins with the next layer, it is freed before the one behind that, and the copy back
// begins when that has run backwards. What is not copied is back where it is recomputed.
func TestMemoTrips(t *testing.T) {
	g := stack("cccccc", 100, 100) // operators 0 to 5 forward, 6 to 11 backward
	g.Tensors[1].Row = 10
	m := newMemo(newProblem(g, swapLimits(math.MaxInt64)))
	for _, test := range []struct {
		layer int
		share share
		part  float64
		want  draft.Trip
	}{
		{0, share{draft.Gap{Tensor: 0, After: 1, Before: 10}, true}, 0, draft.Trip{Tensor: 0, Bytes: 100, Out: 1, Free: 2, Back: 10, Need: 10}},
		{0, share{draft.Gap{Tensor: 0, After: 1, Before: 11}, true}, 0, draft.Trip{Tensor: 0, Bytes: 100, Out: 1, Free: 2, Back: 10, Need: 11}},
		{1, share{draft.Gap{Tensor: 1, After: 2, Before: 9}, false}, 0.5, draft.Trip{Tensor: 1, Bytes: 50, Out: 2, Free: 3, Back: 9, Need: 9}},
		{0, share{draft.Gap{Tensor: 1, After: 4, Before: 11}, false}, 0.5, draft.Trip{Tensor: 1, Bytes: 50, Out: 2, Free: 5, Back: 10, Need: 11}},
		{0, share{draft.Gap{Tensor: 2, After: 3, Before: 11}, false}, 0.5, draft.Trip{Tensor: 2, Out: 3, Free: 4, Back: 11, Need: 11}},
	} {
		if got := m.trip(test.layer, test.share, test.part); got != test.want {
			t.Errorf("layer %d, %+v: got %+v, want %+v", test.layer, test.share, got, test.want)
		}
	}
}
