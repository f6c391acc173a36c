package check

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
)

// TestShelf compares a shelf with a list that is searched from end to end.
func TestShelf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const copies = 2000
	h := newShelf(copies)
	there := map[int32]span{}
	for i := range int32(copies) {
		for gone := range there {
			if r.IntN(20) == 0 {
				h.take(gone)
				delete(there, gone)
			}
		}
		bytes := 1 + r.Int64N(100)
		if lowest := lowestOf(there, bytes); h.lowest(bytes) != lowest {
			t.Fatalf("copy %d: %d bytes fit at %d, and not at %d", i, bytes, lowest, h.lowest(bytes))
		}
		offset := h.lowest(bytes)
		if r.IntN(2) == 0 {
			offset = r.Int64N(1000)
		}
		fits := !slices.ContainsFunc(spansOf(there), func(x span) bool { return x.first < offset+bytes && offset < x.end })
		if h.put(i, offset, bytes) != fits {
			t.Fatalf("copy %d: whether %d bytes are free at %d is %v", i, bytes, offset, fits)
		}
		if fits {
			there[i] = span{offset, offset + bytes}
		}
	}
}

// span is bytes on a shelf.
type span struct{ first, end int64 }

func spansOf(there map[int32]span) []span {
	var all []span
	for _, x := range there {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.first - b.first) })
	return all
}

// lowestOf returns where a number of bytes fit first.
func lowestOf(there map[int32]span, bytes int64) int64 {
	offset := int64(0)
	for _, x := range spansOf(there) {
		if x.first >= offset+bytes {
			break
		}
		offset = x.end
	}
	return offset
}

// stacked is a step whose tensors are all on the host before the first is copied back.
func stacked(tensors int32) (*swap.Graph, []swap.Action) {
	g := &swap.Graph{Ops: make([]swap.Op, 2*tensors+1)}
	var out, back []swap.Action
	for t := range tensors {
		bytes := 1 + int64(t*7919%1000)
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: bytes, Made: t, Uses: []int32{2 * tensors}})
		out = append(out, do(swap.Offload, t, t+1, bytes), do(swap.Free, t, t+1, 0))
		back = append(back, do(swap.Prefetch, t, tensors+t+1, bytes))
	}
	return g, append(out, back...)
}

// TestManySlots has so many copies at a time that each may not look at all the others: that took 10 seconds and more.
func TestManySlots(t *testing.T) {
	begin := time.Now()
	g, actions := stacked(80_000)
	slots := Slots(g, actions)
	if found := Check(g, &swap.Schedule{Actions: actions}, swap.Limits{Device: 1 << 40, Host: 1 << 40}, slots); len(found) > 0 {
		t.Error(found[0])
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func BenchmarkSlots(b *testing.B) {
	g, actions := stacked(80_000)
	for b.Loop() {
		Slots(g, actions)
	}
}
