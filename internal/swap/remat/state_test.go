package remat

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/simulate"
)

// randomGraph makes a step of a few tensors, most of which can be recomputed from others.
func randomGraph(r *rand.Rand, ops, tensors int) *swap.Graph {
	g := &swap.Graph{}
	for range ops {
		g.Ops = append(g.Ops, swap.Op{Duration: time.Duration(r.IntN(100)), Base: int64(r.IntN(20))})
	}
	made := make([]int, tensors)
	for i := range made {
		made[i] = r.IntN(ops - 1)
	}
	slices.Sort(made)
	for i, op := range made {
		t := swap.Tensor{Bytes: 1 + r.Int64N(100), Made: int32(op)}
		if r.IntN(6) > 0 {
			t.Recompute, t.Scratch = time.Duration(1+r.IntN(100)), int64(i%4)*20
		}
		for range 1 + r.IntN(3) {
			t.Uses = append(t.Uses, int32(op+1+r.IntN(ops-op-1)))
		}
		slices.Sort(t.Uses)
		t.Uses = slices.Compact(t.Uses)
		for range min(i, r.IntN(3)) {
			from := int32(i - 1 - r.IntN(min(i, 3)))
			if g.Tensors[from].Made < t.Made && !slices.Contains(t.From, from) {
				t.From = append(t.From, from)
			}
		}
		g.Tensors = append(g.Tensors, t)
	}
	if err := g.Validate(); err != nil {
		panic(err)
	}
	return g
}

// noLink is of no use: nothing is copied.
type noLink struct{}

func (noLink) OutTime(int64) time.Duration { return 0 }
func (noLink) InTime(int64) time.Duration  { return 0 }

// peaks returns the most bytes that are in use at each operator and before it, and the time of the step.
func peaks(t *testing.T, g *swap.Graph, actions []swap.Action) (all []int64, step time.Duration) {
	t.Helper()
	r, err := simulate.Run(g, actions, noLink{}, func(s simulate.Span) {
		if s.Tensor < 0 {
			all = append(all, s.Tensors)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, r.Step
}

// TestFlips makes random changes and compares what follows from them with the simulator, and changes that are undone with what was before.
func TestFlips(t *testing.T) {
	recomputed := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		g := randomGraph(r, 4+r.IntN(40), 2+r.IntN(30))
		s := newState(draft.New(g, swap.Limits{Device: slices.Max(g.Plain()) / 2}))
		for range 60 {
			before, mark := describe(s), s.mark()
			gaps := append(s.gaps(true, nil), s.gaps(false, nil)...)
			if len(gaps) == 0 {
				break
			}
			for range 1 + r.IntN(3) {
				if x := gaps[r.IntN(len(gaps))]; s.isGap(x) {
					s.flip(x.t, x.need)
				}
			}
			if r.IntN(3) == 0 {
				if s.back(mark); !reflect.DeepEqual(describe(s), before) {
					t.Fatalf("seed %d: undone it is %v, it was %v", seed, describe(s), before)
				}
				continue
			}
			used, step := peaks(t, g, s.actions())
			if step != g.Compute()+s.step {
				t.Fatalf("seed %d: a step of %v, simulated are %v", seed, g.Compute()+s.step, step)
			}
			over := int64(0)
			for v := range g.Ops {
				if mine := s.start[v] + s.local[v]; mine != used[v] {
					t.Fatalf("seed %d, operator %d: %d bytes, simulated are %d", seed, v, mine, used[v])
				}
				over += max(0, used[v]+g.Ops[v].Base-s.Limits.Device)
			}
			if over != s.over {
				t.Fatalf("seed %d: %d bytes beyond the limit, simulated are %d", seed, s.over, over)
			}
			for _, again := range s.again {
				recomputed += len(again)
			}
		}
	}
	if recomputed < 10_000 {
		t.Errorf("only %d recomputations", recomputed)
	}
}

// describe copies what a state says.
func describe(s *state) []string {
	return []string{fmt.Sprint(s.needs), fmt.Sprint(s.held), fmt.Sprint(s.again), fmt.Sprint(s.start), fmt.Sprint(s.local), fmt.Sprint(s.step, s.over)}
}
