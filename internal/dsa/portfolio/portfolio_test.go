package portfolio

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/heuristic"
)

// exactly returns a portfolio of one heuristic that is followed by exact search.
func exactly() Solver {
	return Solver{Members: []Member{{Name: "skyline-A", Method: heuristic.SkylineBy("A")}}, Work: 1 << 29, Nodes: 1 << 18, Lives: 1 << 21}
}

// TestRestartsAreTheSame compares what the searchers did on several numbers of workers. Little of it shows in the layout.
func TestRestartsAreTheSame(t *testing.T) {
	type state struct{ nodes, work, peak, bound int64 }
	for seed := range uint64(6) {
		p := dsatest.Packed(rand.New(rand.NewPCG(seed, 8)), 80, 10_000, 300)
		var first []state
		for _, workers := range []int{1, 2, 5} {
			s := newSolution(t.Context(), exactly(), p, dsa.Options{Workers: workers})
			var states []state
			c := s.parts[0]
			for s.start(c, 0); len(states) < 8 && s.worst() != nil; s.improveOne(c) {
				if c.restarts != nil {
					states = append(states, state{c.restarts.nodes, c.restarts.work, c.peak, c.bound})
				}
			}
			if workers == 1 {
				first = states
			} else if !slices.Equal(states, first) {
				t.Fatalf("seed %d, %d workers: %v, expected %v", seed, workers, states, first)
			}
		}
	}
}

// TestManyHardComponents has more components that need an exact search than may keep what they have learned.
func TestManyHardComponents(t *testing.T) {
	p := &dsa.Problem{Align: 1}
	for k := range int64(mostRemembered + 4) {
		part := dsatest.Packed(rand.New(rand.NewPCG(uint64(k), 9)), 80, 10_000, 300)
		for i := range part.Size {
			dsatest.Add(p, 100*k+part.Start[i], 100*k+part.End[i], part.Size[i])
		}
	}
	pf := exactly()
	pf.Nodes = 1 << 15
	l, err := pf.Solve(t.Context(), p, dsa.Options{Capacity: 10_000})
	if err != nil || dsa.Check(p, l) != nil {
		t.Error(err, dsa.Check(p, l))
	}
}

// TestWorkEndsAfterBestFit begins with best fit, which tells nothing of what the skylines after it cost. All work together may be some
// multiple of the limit, which each step has anew.
func TestWorkEndsAfterBestFit(t *testing.T) {
	const limit = 1 << 24
	pf := Solver{
		Members: []Member{{"best-fit", heuristic.BestFit{}}, {"skyline-A", heuristic.SkylineBy("A")}}, Rounds: 1 << 12, Work: limit,
	}
	random := rand.New(rand.NewPCG(3, 9))
	p := &dsa.Problem{Align: 1}
	for i := range int64(6000) {
		dsatest.Add(p, i, i+1+random.Int64N(4000), 1+random.Int64N(1000))
	}
	s := newSolution(t.Context(), pf, p, dsa.Options{Workers: 2})
	c := s.parts[0]
	if !s.start(c, 0) || s.worst() == nil {
		t.Fatal("nothing left to improve")
	}
	s.improve(math.MaxInt)
	var work int64
	for i := range s.workers {
		work += s.workers[i].Work()
	}
	if work > 4*limit {
		t.Errorf("%d nodes visited in %d turns, limit %d", work, c.turns, limit)
	}
}
