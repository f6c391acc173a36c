package dsa_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

func TestCheckFindsWhatIsWrong(t *testing.T) {
	p := &dsa.Problem{Align: 8, Aligns: []int64{0, 16, 0, 0, 0}, Fixed: []int64{dsa.Free, dsa.Free, 64, dsa.Free, dsa.Free}, Ties: []dsa.Tie{{A: 0, B: 3, Delta: 8}}, Period: 10}
	for _, b := range [][3]int64{{0, 4, 10}, {2, 6, 16}, {3, 4, 8}, {1, 3, 8}, {8, 13, 8}} {
		dsatest.Add(p, b[0], b[1], b[2])
	}
	good := dsa.Layout{Offsets: []int64{32, 0, 64, 40, 16}, Peak: 72, Bound: 72}
	if err := dsa.Check(p, good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(l *dsa.Layout)
	}{
		{"short", func(l *dsa.Layout) { l.Offsets = l.Offsets[1:] }},
		{"negative", func(l *dsa.Layout) { l.Offsets[4] = -8 }},
		{"not aligned", func(l *dsa.Layout) { l.Offsets[4] = 20 }},
		{"not aligned as the buffer wants", func(l *dsa.Layout) { l.Offsets[1] = 8 }},
		{"not where it is fixed", func(l *dsa.Layout) { l.Offsets[2] = 72 }},
		{"tie violated", func(l *dsa.Layout) { l.Offsets[3] = 48 }},
		{"overlap", func(l *dsa.Layout) { l.Offsets[1] = 64 }},
		{"overlap below", func(l *dsa.Layout) { l.Offsets[1] = 16 }},
		{"overlap around the end of the period", func(l *dsa.Layout) { l.Offsets[4] = 40 }},
		{"wrong peak", func(l *dsa.Layout) { l.Peak = 80 }},
		{"bound above the peak", func(l *dsa.Layout) { l.Bound = 80 }},
		{"beyond all addresses", func(l *dsa.Layout) { l.Offsets[4] = math.MaxInt64 - 7 }},
	} {
		l := good
		l.Offsets = slices.Clone(good.Offsets)
		if c.change(&l); dsa.Check(p, l) == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}

// TestOverlapAgainstAllPairs compares the sweep with a comparison of all pairs of buffers.
func TestOverlapAgainstAllPairs(t *testing.T) {
	found := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := dsatest.Involved(rng, 12, dsatest.Feature(seed)%(dsatest.WithAll+1)&^dsatest.WithFixed, 6)
		g, err := dsa.NewGroups(p)
		if err != nil {
			t.Fatal(err)
		}
		offsets := make([]int64, p.Len())
		all := make([]int32, p.Len())
		bases := make([]int64, len(g.Step))
		for k := range bases {
			bases[k] = rng.Int64N(40)
		}
		for i := range offsets {
			all[i], offsets[i] = int32(i), p.Align*(bases[g.Of[i]]+g.At[i])
		}
		expected := false
		for i := range all {
			for j := range i {
				expected = expected || g.Of[i] != g.Of[j] && dsatest.Together(p, i, j) &&
					max(offsets[i], offsets[j]) < min(offsets[i]+p.Size[i], offsets[j]+p.Size[j])
			}
		}
		a, b, got := dsa.Overlap(p, all, offsets)
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
