package dsa

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCheckFindsWhatIsWrong(t *testing.T) {
	p := &Problem{Align: 8, Aligns: []int64{0, 16, 0, 0, 0}, Fixed: []int64{Free, Free, 64, Free, Free}, Ties: []Tie{{0, 3, 8}}, Period: 10}
	for _, b := range [][3]int64{{0, 4, 10}, {2, 6, 16}, {3, 4, 8}, {1, 3, 8}, {8, 13, 8}} {
		p.add(b[0], b[1], b[2])
	}
	good := Layout{Offsets: []int64{32, 0, 64, 40, 16}, Peak: 72, Bound: 72}
	if err := Check(p, good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(l *Layout)
	}{
		{"short", func(l *Layout) { l.Offsets = l.Offsets[1:] }},
		{"negative", func(l *Layout) { l.Offsets[4] = -8 }},
		{"not aligned", func(l *Layout) { l.Offsets[4] = 20 }},
		{"not aligned as the buffer wants", func(l *Layout) { l.Offsets[1] = 8 }},
		{"not where it is fixed", func(l *Layout) { l.Offsets[2] = 72 }},
		{"not as it is tied", func(l *Layout) { l.Offsets[3] = 48 }},
		{"overlap", func(l *Layout) { l.Offsets[1] = 64 }},
		{"overlap below", func(l *Layout) { l.Offsets[1] = 16 }},
		{"overlap around the end of the period", func(l *Layout) { l.Offsets[4] = 40 }},
		{"wrong peak", func(l *Layout) { l.Peak = 80 }},
		{"bound above the peak", func(l *Layout) { l.Bound = 80 }},
		{"beyond all addresses", func(l *Layout) { l.Offsets[4] = math.MaxInt64 - 7 }},
	} {
		l := good
		l.Offsets = slices.Clone(good.Offsets)
		if c.change(&l); Check(p, l) == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}

// TestOverlapAgainstAllPairs compares the sweep with looking at every two buffers.
func TestOverlapAgainstAllPairs(t *testing.T) {
	found := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := involved(rng, 12, feature(seed)%(withAll+1)&^withFixed, 6)
		g, err := newGroups(p)
		if err != nil {
			t.Fatal(err)
		}
		offsets := make([]int64, p.Len())
		all := make([]int32, p.Len())
		bases := make([]int64, len(g.step))
		for k := range bases {
			bases[k] = rng.Int64N(40)
		}
		for i := range offsets {
			all[i], offsets[i] = int32(i), p.Align*(bases[g.of[i]]+g.at[i])
		}
		expected := false
		for i := range all {
			for j := range i {
				expected = expected || g.of[i] != g.of[j] && together(p, i, j) &&
					max(offsets[i], offsets[j]) < min(offsets[i]+p.Size[i], offsets[j]+p.Size[j])
			}
		}
		a, b, got := p.overlap(all, offsets)
		if got != expected {
			t.Fatalf("seed %d: found %t (%d and %d), expected %t", seed, got, a, b, expected)
		}
		if got {
			found++
		}
	}
	if found < 200 || found > 1800 {
		t.Errorf("%d of 2000 overlap", found)
	}
}

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
