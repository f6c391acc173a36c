package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// TestRangesAgainstBytes adds and cuts stretches of two neighbouring regions, and compares each with an array of bytes.
func TestRangesAgainstBytes(t *testing.T) {
	const size, border = 600, 350 // addresses; the second region begins at the border
	rng := rand.New(rand.NewPCG(5, 6))
	var set ranges
	var in [size]bool
	all := func(p, n int, want bool) bool {
		for i := p; i < p+n; i++ {
			if in[i] != want {
				return false
			}
		}
		return true
	}
	for step := range 50_000 {
		p, n := rng.IntN(size), 1+rng.IntN(1+rng.IntN(12))
		region := int32(0)
		if p >= border {
			region = 1
		}
		if p+n > size || p < border && p+n > border {
			continue
		}
		at := stretch{cuda.Ptr(p), int64(n), region}
		held := all(p, n, true)
		if set.holds(at.ptr, at.size) != held {
			t.Fatalf("step %d: holds(%d, %d) is not %v", step, p, n, held)
		}
		add := all(p, n, false)
		if add {
			set.add(at)
		} else if set.cut(at.ptr, at.size) != held {
			t.Fatalf("step %d: cut(%d, %d) is not %v", step, p, n, held)
		}
		for i := p; i < p+n && (add || held); i++ {
			in[i] = add
		}
		checkRanges(t, &set, in[:], border)
	}
}

// checkRanges checks that a set has the longest stretches, in both orders.
func checkRanges(t *testing.T, set *ranges, in []bool, border int) {
	t.Helper()
	at := set.byAddr.first()
	n := 0
	for p := 0; p < len(in); {
		if !in[p] {
			p++
			continue
		}
		end, region := p+1, int32(0)
		if p >= border {
			region = 1
		}
		for end < len(in) && in[end] && end != border {
			end++
		}
		want := stretch{cuda.Ptr(p), int64(end - p), region}
		if !set.byAddr.valid(at) || stretchOf(set.byAddr.at(at)) != want {
			t.Fatalf("no stretch %+v by address", want)
		}
		if spot := set.bySize.seek(want.size, want.ptr); !set.bySize.valid(spot) || set.bySize.at(spot) != want.rowBySize() {
			t.Fatalf("no stretch %+v by size", want)
		}
		at = set.byAddr.next(at)
		p = end
		n++
	}
	for at := set.bySize.first(); set.bySize.valid(at); at = set.bySize.next(at) {
		n--
	}
	if set.byAddr.valid(at) || n != 0 {
		t.Fatalf("there are stretches that should have gone")
	}
}
