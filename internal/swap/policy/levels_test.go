package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLevels compares with a number for each operator. A stretch of none has less than any number.
func TestLevels(t *testing.T) {
	var l levels
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		numbers := make([]int64, 1+rng.IntN(20))
		for i := range numbers {
			numbers[i] = rng.Int64N(100) - 50
		}
		l.set(numbers)
		if len(l.worst) >= 4*len(numbers) {
			t.Fatalf("%d nodes for %d operators", len(l.worst), len(numbers))
		}
		for range 40 {
			first, end := rng.Int32N(int32(len(numbers)+1)), rng.Int32N(int32(len(numbers)+1))
			want := int64(math.MinInt64 / 2)
			if first < end {
				want = slices.Max(numbers[first:end])
			}
			if got := l.most(first, end); got != want {
				t.Fatalf("seed %d: %d from %d to %d, expected %d", seed, got, first, end, want)
			}
			first, end = rng.Int32N(int32(len(numbers)+1)), rng.Int32N(int32(len(numbers)+1))
			by := rng.Int64N(40) - 20
			l.raise(first, end, by)
			for i := first; i < end; i++ {
				numbers[i] += by
			}
		}
	}
}
