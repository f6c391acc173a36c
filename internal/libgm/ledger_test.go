package main

import (
	"math/rand"
	"testing"

	"gm/internal/cuda"
)

// TestLedger compares a ledger with a map.
func TestLedger(t *testing.T) {
	l, want := newLedger(), map[cuda.Ptr]int64{}
	random := rand.New(rand.NewSource(1))
	for i := range int64(200_000) {
		p := cuda.Ptr(random.Int63n(60_000)+1) * 512
		if requested, ok := want[p]; ok {
			if e := l.find(p); e == nil || e.requested != requested {
				t.Fatalf("%#x: %+v, want %d bytes", p, e, requested)
			}
			if e, ok := l.take(p); !ok || e.requested != requested {
				t.Fatalf("taken %#x: %+v, want %d bytes", p, e, requested)
			}
			delete(want, p)
			continue
		}
		if _, ok := l.take(p); ok || l.find(p) != nil {
			t.Fatalf("%#x is there", p)
		}
		l.put(&entry{ptr: p, requested: i})
		want[p] = i
	}
	n := 0
	l.each(func(e *entry) {
		if n++; want[e.ptr] != e.requested {
			t.Errorf("%#x: %d bytes, want %d", e.ptr, e.requested, want[e.ptr])
		}
	})
	if n != len(want) || l.n != n {
		t.Errorf("%d entries, of %d counted, want %d", n, l.n, len(want))
	}
}
