package pairs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

func TestPairsFindTheLeastPeak(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 2))
		with := dsatest.Feature(seed) % (dsatest.WithAll + 1)
		p := dsatest.Involved(rng, 6, with, 4)
		l, err := Solver{}.Solve(t.Context(), p, dsa.Options{})
		if err == nil {
			err = dsa.Check(p, l)
		}
		if least := leastPeak(p); err != nil || l.Peak != least || !l.Optimal() {
			t.Fatalf("seed %d, features %b: peak %d, bound %d, expected %d: %v\n%+v", seed, with, l.Peak, l.Bound, least, err, p)
		}
		if l.Peak > p.Align {
			o := dsa.Options{Capacity: l.Peak - 1}
			if l, err := (Solver{}).Solve(t.Context(), p, o); err != nil || l.Bound <= o.Capacity || dsa.Check(p, l) != nil {
				t.Fatalf("seed %d: bound %d for a capacity of %d: %v, %v", seed, l.Bound, o.Capacity, err, dsa.Check(p, l))
			}
		}
	}
}

// leastPeak tries all offsets below a peak, which grows until there is a layout.
func leastPeak(p *dsa.Problem) int64 {
	for peak := int64(0); ; peak += p.Align {
		if (&allOffsets{p: p, peak: peak, offsets: make([]int64, p.Len())}).from(0) {
			return peak
		}
	}
}

type allOffsets struct {
	p       *dsa.Problem
	peak    int64
	offsets []int64
}

// from finds offsets for the buffers from the given one on.
func (a *allOffsets) from(i int) bool {
	p := a.p
	if i == p.Len() {
		return true
	}
	most := a.peak - (p.Size[i]+p.Align-1)/p.Align*p.Align
	if p.Size[i] == 0 || p.Start[i] == p.End[i] {
		if most = 0; p.Fixed != nil || slices.ContainsFunc(p.Ties, func(t dsa.Tie) bool { return int(t.A) == i || int(t.B) == i }) {
			most = a.peak + 50*p.Align // as far as ties and fixed offsets can take it
		}
	}
	for offset := int64(0); offset <= most; offset += p.Align {
		if a.offsets[i] = offset; a.suits(i) && a.from(i+1) {
			return true
		}
	}
	return false
}

// suits reports whether the offset of a buffer is valid, given those before it.
func (a *allOffsets) suits(i int) bool {
	p, o := a.p, a.offsets
	if p.Aligns != nil && p.Aligns[i] > 1 && o[i]%p.Aligns[i] != 0 || p.Fixed != nil && p.Fixed[i] != dsa.Free && o[i] != p.Fixed[i] {
		return false
	}
	tied := make([]bool, p.Len())
	tied[i] = true
	for range p.Ties {
		for _, t := range p.Ties {
			both := tied[t.A] || tied[t.B]
			tied[t.A], tied[t.B] = both, both
		}
	}
	for _, t := range p.Ties {
		if int(max(t.A, t.B)) <= i && o[t.B]-o[t.A] != t.Delta {
			return false
		}
	}
	for j := range i {
		if !tied[j] && p.Size[i] > 0 && p.Size[j] > 0 && dsatest.Together(p, i, j) && o[i] < o[j]+p.Size[j] && o[j] < o[i]+p.Size[i] {
			return false
		}
	}
	return true
}
