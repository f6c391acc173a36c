package bitset

import (
	"math/rand/v2"
	"testing"
)

func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, n := range []int{1, 64, 65, 5000} {
		b, in := New(n), make([]bool, n)
		for range 2000 {
			i := rng.IntN(n)
			if in[i] = rng.IntN(2) == 0; in[i] {
				b.Add(i)
			} else {
				b.Remove(i)
			}
			i = rng.IntN(n)
			after, before := i+1, i-1
			for after < n && !in[after] {
				after++
			}
			if after == n {
				after = -1
			}
			for before >= 0 && !in[before] {
				before--
			}
			if a, b := b.After(i), b.Before(i); a != after || b != before {
				t.Fatalf("of %d, around %d: %d and %d, expected %d and %d", n, i, b, a, before, after)
			}
		}
	}
}
