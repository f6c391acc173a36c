package blocks

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
)

// TestFreeSetAgainstSortedSlice applies the same operations to a freeSet and to a sorted slice.
func TestFreeSetAgainstSortedSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var set freeSet
	var model []free
	order := func(a, b free) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.ptr, b.ptr)) }
	for step := range 20000 {
		grow := step < 10000
		if len(model) > 0 && step%4 == 0 {
			i := rng.IntN(len(model))
			f := free{size: rng.Int64N(40), ptr: cuda.Ptr(rng.Uint64N(1 << 40)), id: int32(step)}
			set.rekey(model[i].size, model[i].ptr, f)
			model = slices.Delete(model, i, i+1)
			to, _ := slices.BinarySearchFunc(model, f, order)
			model = slices.Insert(model, to, f)
		} else if len(model) == 0 || grow == (rng.IntN(3) > 0) {
			f := free{size: rng.Int64N(40), ptr: cuda.Ptr(rng.Uint64N(1 << 40)), id: int32(step)}
			i, found := slices.BinarySearchFunc(model, f, order)
			if found {
				continue
			}
			set.insert(f)
			model = slices.Insert(model, i, f)
		} else {
			i := rng.IntN(len(model))
			set.remove(model[i].size, model[i].ptr)
			model = slices.Delete(model, i, i+1)
		}
		size, ptr := rng.Int64N(42), cuda.Ptr(rng.Uint64N(1<<40))
		i, _ := slices.BinarySearchFunc(model, free{size: size, ptr: ptr}, order)
		at := set.seek(size, ptr)
		if set.valid(at) != (i < len(model)) || set.valid(at) && set.at(at) != model[i] {
			t.Fatalf("step %d: seek(%d, %#x) is not what a sorted slice finds", step, size, ptr)
		}
		if before := set.before(at); set.valid(before) != (i > 0) || i > 0 && set.at(before) != model[i-1] {
			t.Fatalf("step %d: what is before (%d, %#x) is not what a sorted slice finds", step, size, ptr)
		}
	}
	i := 0
	for at := set.first(); set.valid(at); at = set.next(at) {
		if set.at(at) != model[i] {
			t.Fatalf("row %d of the walk differs", i)
		}
		i++
	}
	if i != len(model) {
		t.Fatalf("the walk has %d rows, want %d", i, len(model))
	}
}
