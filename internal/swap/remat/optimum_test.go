package remat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/draft"
	"gm/internal/swap/papers"
	"gm/internal/swap/relax"
)

// place is a moment of a step: the next operator, and the tensors that are on the device, a bit each.
type place struct {
	op   int32
	here uint32
}

// optimum returns the least time of a step of a few tensors that copies nothing, and false if there is none, by trying all there is to do.
func optimum(g *swap.Graph, device int64) (time.Duration, bool) {
	took := map[place]time.Duration{{}: 0}
	done := map[place]bool{}
	for {
		at, least := place{}, time.Duration(math.MaxInt64)
		for p, t := range took { // the tie does not matter
			if !done[p] && t < least {
				at, least = p, t
			}
		}
		switch {
		case least == math.MaxInt64:
			return 0, false
		case int(at.op) == len(g.Ops):
			return least, true
		}
		done[at] = true
		choices(g, device, at, func(to place, more time.Duration) {
			if before, ok := took[to]; !ok || least+more < before {
				took[to] = least + more
			}
		})
	}
}

// choices calls do with all that can be done next: the operator runs, or a tensor is freed or recomputed.
func choices(g *swap.Graph, device int64, at place, do func(to place, took time.Duration)) {
	used, during, reads, writes, ends := g.Ops[at.op].Base, int64(0), uint32(0), uint32(0), uint32(0)
	for i := range g.Tensors {
		t, bit := &g.Tensors[i], uint32(1)<<i
		if at.here&bit != 0 {
			used += t.Bytes
		}
		if t.Made == at.op {
			writes |= bit
			during += t.Bytes
		} else if slices.Contains(t.Uses, at.op) {
			reads |= bit
		}
		if t.Last() == at.op {
			ends |= bit
		}
	}
	if at.here&reads == reads && used+during <= device {
		do(place{at.op + 1, (at.here | writes) &^ ends}, g.Ops[at.op].Duration)
	}
	for i := range g.Tensors {
		t, bit := &g.Tensors[i], uint32(1)<<i
		if t.Recompute == 0 || t.Made >= at.op {
			continue
		}
		from := uint32(0)
		for _, f := range t.From {
			from |= 1 << f
		}
		switch {
		case at.here&bit != 0:
			do(place{at.op, at.here &^ bit}, 0)
		case at.here&from == from && used+t.Bytes+t.Scratch <= device:
			do(place{at.op, at.here | bit}, t.Recompute)
		}
	}
}

// TestOptimum compares with the optimum, and that with the bound: a schedule that is found is right and no better, and mostly no worse.
func TestOptimum(t *testing.T) {
	const problems = 400
	some, found, best, tight := 0, 0, 0, 0
	for seed := range uint64(problems) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(r, 4+r.IntN(8), 2+r.IntN(6))
		top := slices.Max(g.Plain())
		l := swap.Limits{Device: g.Least() + r.Int64N(max(1, top-g.Least())), Link: noLink{}}
		least, possible := optimum(g, l.Device)
		if possible {
			some++
		}
		for name, plan := range map[string]func(*draft.Problem) ([]swap.Action, error){"remat": Plan, "sketch": Sketch, "dtr": papers.DTR, "coop": papers.Coop} {
			actions, err := plan(draft.New(g, l))
			if short := (&draft.ShortError{}); errors.As(err, &short) {
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, name, err)
			}
			if v := check.Check(g, &swap.Schedule{Actions: actions}, l, nil); len(v) > 0 {
				t.Fatalf("seed %d: %s: %v", seed, name, v[0])
			}
			_, step := peaks(t, g, actions)
			if !possible || step < least {
				t.Fatalf("seed %d: %s takes %v, where the optimum is %v (%v)", seed, name, step, least, possible)
			}
			if name == "remat" {
				found++
				if step == least {
					best++
				}
			}
		}
		bound, ok := relax.Bound(g, l.Device, relax.Effort{Blocks: 1 + r.IntN(12), Rounds: 500})
		if possible && (!ok || bound > least) {
			t.Fatalf("seed %d: the bound is %v (%v), the optimum %v", seed, bound, ok, least)
		}
		if possible && bound >= least*99/100 {
			tight++
		}
	}
	t.Logf("%d of %d can be done, %d found, %d best; the bound is within 1 %% in %d", some, problems, found, best, tight)
	if some < problems/2 || found < some*95/100 || best < some*90/100 {
		t.Errorf("%d of %d can be done, %d found, %d of them as well as can be", some, problems, found, best)
	}
}
