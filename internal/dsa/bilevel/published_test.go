package bilevel_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/dsatest"
	"gm/internal/models/layouts"
)

// published returns MEMO's solver with the default solver on both levels.
func published() bilevel.Solver {
	s := both()
	s.Published = true
	return s
}

// intruders counts buffers that lie in the addresses of a box, live between its first birth and its last death, and are not in it.
func intruders(p *dsa.Problem, offsets []int64, box []int32) int {
	inside := map[int32]bool{}
	start, end, low, high := p.Start[box[0]], p.End[box[0]], offsets[box[0]], int64(0)
	for _, i := range box {
		inside[i] = true
		start, end = min(start, p.Start[i]), max(end, p.End[i])
		low, high = min(low, offsets[i]), max(high, offsets[i]+p.Size[i])
	}
	n := 0
	for i := range p.Size {
		if !inside[int32(i)] && p.Start[i] < p.End[i] && p.Start[i] < end && start < p.End[i] && offsets[i] < high && low < offsets[i]+p.Size[i] {
			n++
		}
	}
	return n
}

// TestPublished checks that an occurrence keeps its addresses to itself from its first birth to its last death, and that this is not so
// where boxes are taken apart.
func TestPublished(t *testing.T) {
	folded, shared := 0, 0
	for seed := range uint64(200) {
		p := repetitive(rand.New(rand.NewPCG(seed, 6)))
		l, err := published().SolveRepeats(t.Context(), p, dsa.Options{})
		if errors.Is(err, bilevel.ErrNoRepeats) {
			continue
		}
		if err == nil {
			err = dsa.Check(p, l)
		}
		if err != nil || l.Bound != dsatest.Load(p) || l.Method != "memo" {
			t.Fatalf("seed %d: bound %d, expected %d, by %s: %v", seed, l.Bound, dsatest.Load(p), l.Method, err)
		}
		ours, err := both().Solve(t.Context(), p, dsa.Options{})
		if err != nil {
			t.Fatal(err)
		}
		folded++
		for _, boxes := range bilevel.Boxes(p, true) {
			for _, box := range boxes {
				if n := intruders(p, l.Offsets, box); n > 0 {
					t.Fatalf("seed %d: %d buffers among those of a box", seed, n)
				}
				if intruders(p, ours.Offsets, box) > 0 {
					shared++
				}
			}
		}
	}
	if folded < 100 || shared < 100 {
		t.Errorf("%d of 200 problems had repeated parts; bilevel shares the space of %d boxes", folded, shared)
	}
}

// TestPublishedCost has layers that pass a tensor on: it dies right before a transient buffer of its size is born, and its successor is born
// right after that one's death. A box over the layer's other buffers, which span both moments, keeps the space of the transient one.
func TestPublishedCost(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for layer := range int64(8) {
		at := 100 * layer
		dsatest.Add(p, at+10, at+20, 2)
		dsatest.Add(p, at+30, at+90, 1)
		dsatest.Add(p, at+35, at+95, 1)
		dsatest.Add(p, at+50, at+60, 10)
		dsatest.Add(p, at+70, at+140, 10) // until the next layer's transient buffer
	}
	for _, c := range []struct {
		solver bilevel.Solver
		peak   int64
	}{{both(), 12}, {published(), 22}} {
		l, err := c.solver.Solve(t.Context(), p, dsa.Options{})
		if err != nil || dsa.Check(p, l) != nil || l.Bound != 12 || l.Peak != c.peak {
			t.Errorf("by %s: peak %d, expected %d: %v, %v", l.Method, l.Peak, c.peak, err, dsa.Check(p, l))
		}
	}
}

// TestPublishedModels lays out an iteration of MEMO's models as MEMO does.
func TestPublishedModels(t *testing.T) {
	for _, m := range layouts.Models(64 << 10) {
		for _, m.Offload = range []bool{false, true} {
			l := solved(t, published(), m.Problem())
			t.Logf("%s, offload %t: by %s, %.4f of the bound", m.Name, m.Offload, l.Method, float64(l.Peak)/float64(l.Bound))
			if l.Method != "memo" {
				t.Errorf("%s: laid out by %s", m.Name, l.Method)
			}
		}
	}
}
