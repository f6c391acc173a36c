package blocks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
)

// TestIdleSetAgainstSortedSlice applies the same operations to an idleSet and to a sorted slice.
func TestIdleSetAgainstSortedSlice(t *testing.T) {
	type piece struct {
		size   int64
		number int32
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var set idleSet
	var model []piece
	order := func(a, b piece) int {
		if a.size != b.size {
			return int(a.size - b.size)
		}
		return int(a.number - b.number)
	}
	number := func(i int) int32 {
		if i < 0 || i >= len(model) {
			return none
		}
		return model[i].number
	}
	for step := range 20000 {
		p := piece{(1 + rng.Int64N(9)) * cuda.Granularity, rng.Int32N(200)}
		i, found := slices.BinarySearchFunc(model, p, order)
		switch {
		case found:
			set.remove(p.size, p.number)
			model = slices.Delete(model, i, i+1)
		case rng.IntN(20_000) > step:
			set.add(p.size, p.number)
			model = slices.Insert(model, i, p)
		}
		q := piece{rng.Int64N(11 * cuda.Granularity), rng.Int32N(201)}
		if q.size%cuda.Granularity != 0 && rng.IntN(2) == 0 || q.size == 0 {
			q.size = roundUp(q.size+1, cuda.Granularity)
		}
		want, _ := slices.BinarySearchFunc(model, q, order)
		if q.size%cuda.Granularity != 0 {
			q.number = 0 // as callers ask for sizes that no piece has
			want, _ = slices.BinarySearchFunc(model, q, order)
		}
		if got := set.from(q.size, q.number); got != number(want) {
			t.Fatalf("step %d: from(%d, %d) = %d, want %d", step, q.size, q.number, got, number(want))
		}
		if got := set.before(q.size, q.number); got != number(want-1) {
			t.Fatalf("step %d: before(%d, %d) = %d, want %d", step, q.size, q.number, got, number(want-1))
		}
		if got := set.last(); got != number(len(model)-1) {
			t.Fatalf("step %d: last() = %d, want %d", step, got, number(len(model)-1))
		}
		var bytes int64
		for _, p := range model {
			bytes += p.size
		}
		if set.empty() != (len(model) == 0) || set.bytes() != bytes {
			t.Fatalf("step %d: empty %v with %d bytes, want %d pieces with %d bytes", step, set.empty(), set.bytes(), len(model), bytes)
		}
	}
}

// checkPieces checks that the sets of idle pieces are what the bytes in use say.
func (s *Stitch) checkPieces(t *testing.T) {
	t.Helper()
	idle := 0
	for id := range s.pieces {
		p := &s.pieces[id]
		if p.heap == none || p.used > 0 {
			continue
		}
		idle++
		if s.heaps[p.heap].idle.from(p.size, int32(id)) != int32(id) {
			t.Fatalf("piece %d is not among the idle ones", id)
		}
	}
	for _, h := range s.heaps {
		idle -= h.idle.pieces
	}
	if idle != 0 {
		t.Fatalf("%d idle pieces are missing", idle)
	}
}
