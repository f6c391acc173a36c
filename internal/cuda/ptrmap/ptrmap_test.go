package ptrmap

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// TestAgainstMap makes random changes to a table and to a Go map, and compares them.
func TestAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m, model := New[int32](4), map[cuda.Ptr]int32{}
	for step := range int32(200_000) {
		p := cuda.Ptr(1+rng.Uint64N(5000)) * 512
		want, known := model[p]
		if value, ok := m.Get(p); ok != known || value != want || (m.Find(p) != nil) != known {
			t.Fatalf("step %d: %#x has %d, %v; want %d, %v", step, p, value, ok, want, known)
		}
		switch {
		case known && rng.IntN(4) == 0:
			m.Set(p, step)
			model[p] = step
		case known:
			if value, ok := m.Take(p); !ok || value != want {
				t.Fatalf("step %d: took %d, %v from %#x; want %d", step, value, ok, p, want)
			}
			delete(model, p)
		default:
			m.Put(p, step)
			model[p] = step
		}
	}
	n := 0
	m.Each(func(p cuda.Ptr, value *int32) {
		if n++; model[p] != *value {
			t.Errorf("%#x has %d, want %d", p, *value, model[p])
		}
	})
	if n != len(model) || m.Len() != n {
		t.Errorf("%d entries, %d counted, want %d", n, m.Len(), len(model))
	}
	for _, p := range []cuda.Ptr{0, 7} {
		if _, ok := m.Take(p); ok || m.Find(p) != nil {
			t.Errorf("%#x is in the table", p)
		}
	}
}
