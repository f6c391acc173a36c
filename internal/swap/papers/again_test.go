package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/evict"
)

// tensor is one of a row: the operator i takes 100 ns and writes tensor i. Behind them an operator reads each.
type tensor struct {
	bytes int64
	again time.Duration
	from  []int32
	kind  swap.OpType
}

// row is the step of a row of tensors. Touched are those that operators read beside that.
func row(all []tensor, touched map[int32][]int32) *swap.Graph {
	g := &swap.Graph{}
	for i, x := range all {
		g.Ops = append(g.Ops, swap.Op{Duration: 100, Type: x.kind})
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: x.bytes, Made: int32(i), Recompute: x.again, From: x.from, Uses: append(touched[int32(i)], int32(len(all)+i))})
	}
	for range all {
		g.Ops = append(g.Ops, swap.Op{Phase: swap.Backward})
	}
	return g
}

// evicted lists the tensors that a policy evicts before the operators of a row. What comes behind them reads one tensor at a time.
func evicted(t *testing.T, plan func(*draft.Problem) ([]swap.Action, error), g *swap.Graph, device int64) string {
	t.Helper()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	actions, err := plan(draft.New(g, swap.Limits{Device: device}))
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, a := range actions {
		if a.Kind == swap.Free && int(a.At) < len(g.Tensors) {
			words = append(words, fmt.Sprint(a.Tensor))
		}
	}
	return strings.Join(words, " ")
}

// TestEvicted compares what DTR and Coop evict: for the last tensor of a row there is no room.
func TestEvicted(t *testing.T) {
	of := func(bytes int64, again time.Duration, from ...int32) tensor {
		return tensor{bytes, again, from, swap.Conv}
	}
	cheap := func(x tensor) tensor { x.kind = swap.Activation; return x }
	for name, test := range map[string]struct {
		row       []tensor
		touched   map[int32][]int32
		device    int64
		dtr, coop string
	}{
		"room":               {[]tensor{of(100, 10), of(100, 10), of(100, 10)}, nil, 300, "", ""},
		"the oldest":         {[]tensor{of(100, 10), of(100, 10), of(100, 10), of(100, 10)}, nil, 300, "0", "0"},
		"the least used":     {[]tensor{of(100, 10), of(100, 10), of(100, 10), of(100, 10)}, map[int32][]int32{0: {2}}, 300, "1", "1"},
		"the cheapest":       {[]tensor{of(100, 10), of(100, 1), of(100, 10), of(100, 10)}, nil, 300, "1", "1"},
		"not what must stay": {[]tensor{of(100, 0), of(100, 10), of(100, 10), of(100, 10)}, nil, 300, "1", "1"},
		// 10 ns over 200 ns and 100 bytes, or over 100 ns and 300 bytes: Coop does not look at bytes where one is enough.
		"the largest": {[]tensor{of(100, 10), of(300, 10), of(100, 10), of(100, 10)}, nil, 500, "1", "0"},
		// Without what 0 takes, which is gone, 1 would be the next: then 10 ns over 400, with it 20. 2 takes 13 over 300.
		"not next to what is gone": {[]tensor{of(100, 10), of(100, 10, 0), of(100, 13), of(100, 99), of(100, 99), of(100, 99)}, nil, 400, "0 2", "0 2"},
		// 0 and 2 are the cheapest and make no room together. Coop pays for 1, and not for 2.
		"next to each other": {[]tensor{of(100, 10), of(100, 40), of(100, 10), of(100, 99), of(200, 99)}, nil, 400, "0 2 1", "0 1"},
		// Cheap tensors lie together where Coop puts them at the other end.
		"kinds apart": {
			[]tensor{of(100, 900), cheap(of(100, 1)), of(100, 900), cheap(of(100, 1)), cheap(of(200, 1))}, nil, 400, "1 3 0", "3 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evicted(t, DTR, row(test.row, test.touched), test.device); got != test.dtr {
				t.Errorf("dtr evicts %s, want %s", got, test.dtr)
			}
			if got := evicted(t, Coop, row(test.row, test.touched), test.device); got != test.coop {
				t.Errorf("coop evicts %s, want %s", got, test.coop)
			}
		})
	}
}

// TestWindow has windows by hand. A tensor's number is its cost, but for 9, which cannot go.
func TestWindow(t *testing.T) {
	const free = evict.None
	for name, test := range map[string]struct {
		tensors    []int32
		bytes      []int64
		room, held int64
		first, end int
	}{
		"one":                        {[]int32{3, 1, 2}, []int64{10, 10, 10}, 10, 0, 1, 2},
		"the lowest of equal ones":   {[]int32{3, 1, 1}, []int64{10, 10, 10}, 10, 0, 1, 2},
		"two":                        {[]int32{3, 1, 2, 4}, []int64{10, 10, 10, 10}, 15, 0, 1, 3},
		"one large":                  {[]int32{3, 1, 2, 4}, []int64{20, 10, 10, 10}, 20, 0, 0, 1},
		"with a gap":                 {[]int32{1, 2, free, 2}, []int64{10, 10, 10, 10}, 20, 0, 1, 3},
		"over a gap":                 {[]int32{4, 2, free, 1, 5}, []int64{10, 10, 10, 10, 10}, 30, 0, 1, 4},
		"not over what stays":        {[]int32{1, 9, 1, 5, 5}, []int64{10, 10, 10, 10, 10}, 20, 0, 2, 4},
		"bytes of tensors, not gaps": {[]int32{1, free, 1}, []int64{10, 90, 10}, 0, 20, 0, 3},
		"none":                       {[]int32{1, 9, free}, []int64{10, 10, 10}, 20, 0, 0, 0},
	} {
		var blocks []evict.Block
		for i, x := range test.tensors {
			blocks = append(blocks, evict.Block{Bytes: test.bytes[i], Tensor: x})
		}
		first, end := window(blocks, test.room, test.held, func(x int32) float64 { return []float64{0, 1, 2, 3, 4, 5, 9: math.Inf(1)}[x] })
		if first != test.first || end != test.end {
			t.Errorf("%s: %d to %d, want %d to %d", name, first, end, test.first, test.end)
		}
	}
}

// TestFit places tensors.
func TestFit(t *testing.T) {
	p := evict.NewPool(100)
	for i, bytes := range []int64{30, 10, 20, 10, 20, 10} {
		p.Put(i, int32(i), bytes, false)
	}
	for _, gone := range []int32{0, 2, 4} {
		p.Take(gone)
	}
	var got []int
	for _, bytes := range []int64{10, 20, 30, 31} {
		got = append(got, bestFit(p, bytes), endFit(p, bytes, false), endFit(p, bytes, true))
	}
	if want := []int{2, 0, 4, 2, 0, 4, 0, 0, 0, -1, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
