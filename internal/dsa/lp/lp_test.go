package lp

import (
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/internal/dsa"
)

func TestGolden(t *testing.T) {
	for name, test := range map[string]struct {
		problem  dsa.Problem
		capacity int64
	}{
		"plain": {dsa.Problem{Start: []int64{0, 5, 0, 10}, End: []int64{10, 15, 0, 20}, Size: []int64{100, 16, 5, 32}, Align: 16}, 0},
		"all": {dsa.Problem{
			Start: []int64{0, 5, 2, 18}, End: []int64{4, 15, 4, 26}, Size: []int64{3, 5, 7, 9}, Align: 1, Period: 20,
			Fixed: []int64{dsa.Free, dsa.Free, 12, dsa.Free}, Aligns: []int64{0, 8, 0, 1},
			Ties: []dsa.Tie{{A: 0, B: 3, Delta: 3}},
		}, 64},
	} {
		var got strings.Builder
		if err := Write(&got, &test.problem, test.capacity); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/" + name + ".lp")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: expected -, got +:\n%s", name, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	crowd := dsa.Problem{Align: 1, Start: make([]int64, 2002), End: make([]int64, 2002), Size: make([]int64, 2002)}
	for i := range crowd.Size {
		crowd.End[i], crowd.Size[i] = 1, 1
	}
	two := func(size, align int64) dsa.Problem {
		return dsa.Problem{Start: []int64{0, 0}, End: []int64{1, 1}, Size: []int64{size, size}, Align: align}
	}
	aligned := two(1, 1)
	aligned.Aligns = []int64{math.MaxInt64 / 2, 0}
	for want, p := range map[string]dsa.Problem{
		"more than 2000000 pairs of buffers live at the same time": crowd,
		"no buffer has both a life and a size":                     two(0, 1),
		"more than a solver knows exactly":                         two(1<<60, 1),
		"is aligned to":                                            aligned,
		"invalid problem":                                          two(1, 0),
	} {
		if err := Write(io.Discard, &p, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
	}
}

// TestConflicts compares the sweep with a comparison of all pairs at all moments.
func TestConflicts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		p := random(r, 8, 20)
		if r.IntN(2) == 0 {
			p.Period = 12
			for i := range p.Start {
				p.Start[i] -= 20
				p.End[i] -= 20
			}
		}
		if r.IntN(2) == 0 {
			p.Ties = []dsa.Tie{{A: 0, B: 3}, {A: 5, B: 3}}
		}
		tied := func(a, b int32) bool {
			in := func(i int32) bool { return i == 0 || i == 3 || i == 5 }
			return p.Ties != nil && in(a) && in(b)
		}
		var all []int32
		var want []pair
		for b := range int32(p.Len()) {
			all = append(all, b)
			for a := range b {
				if overlap(p, a, b) && !tied(a, b) {
					want = append(want, pair{a, b})
				}
			}
		}
		got, _ := conflicts(p, all)
		slices.SortFunc(want, func(x, y pair) int { return int(x.a-y.a)*100 + int(x.b-y.b) })
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, expected %v", p, got, want)
		}
	}
}

// overlap reports whether two buffers live at the same time.
func overlap(p *dsa.Problem, a, b int32) bool {
	lives := func(i int32, at int64) bool {
		if p.Period == 0 {
			return p.Start[i] <= at && at < p.End[i]
		}
		for at -= 10 * p.Period; at < 100; at += p.Period {
			if p.Start[i] <= at && at < p.End[i] {
				return true
			}
		}
		return false
	}
	for at := range int64(40) {
		if lives(a, at) && lives(b, at) {
			return true
		}
	}
	return false
}

// random returns a problem of n buffers that are born before a given time, each with a life and a size.
func random(r *rand.Rand, n int, before int64) *dsa.Problem {
	p := &dsa.Problem{Align: 16}
	for range n {
		start := r.Int64N(before)
		p.Start = append(p.Start, start)
		p.End = append(p.End, start+1+r.Int64N(10))
		p.Size = append(p.Size, 16*(1+r.Int64N(5)))
	}
	return p
}
