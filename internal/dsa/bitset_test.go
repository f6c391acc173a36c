package dsa

import (
	"math/rand/v2"
	"testing"
)

func TestBitset(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, n := range []int{1, 64, 65, 5000} {
		b, in := newBitset(n), make([]bool, n)
		for range 2000 {
			i := rng.IntN(n)
			if in[i] = rng.IntN(2) == 0; in[i] {
				b.add(int32(i))
			} else {
				b.remove(int32(i))
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
			if a, b := b.after(int32(i)), b.before(int32(i)); int(a) != after || int(b) != before {
				t.Fatalf("of %d, around %d: %d and %d, expected %d and %d", n, i, b, a, before, after)
			}
		}
	}
}
