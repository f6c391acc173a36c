package policy

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/swap/draft"
)

// plansOf counts the schedules that a maker has of plans: those with the same result.
func plansOf(m *maker, plans ...planner) (found, made int) {
	for _, plan := range plans {
		actions, err := plan(m.problem)
		if err != nil {
			continue
		}
		r, err := m.admit(actions)
		if err != nil {
			continue
		}
		made++
		// It is there, or one that takes no more memory and is as good.
		if slices.ContainsFunc(m.members, func(x member) bool { return x.peak <= r.peak && x.compare(&r) <= 0 }) {
			found++
		}
	}
	return found, made
}

// TestAddOthers adds what copies, and what recomputes, where that may be as fast as a choice: all without a choice or beside a slow one, none beside
// one that is faster than possible.
func TestAddOthers(t *testing.T) {
	copying, again := 0, 0
	for seed := range uint64(200) {
		g, l := randomProblem(seed, 30)
		p := newProblem(g, l)
		end := p.Begin[p.Ops()]
		for _, best := range []outcome{
			{result: result{step: end}},
			{result: result{step: end}, share: []int64{}},
			{result: result{step: end + 1000}, share: []int64{}},
			{result: result{step: math.MaxInt64}, share: []int64{}},
		} {
			m := &maker{problem: p}
			if err := m.addOthers(&best); err != nil {
				t.Fatal(err)
			}
			all := best.share == nil
			copies, recomputes := all || p.mayCopy(best.step), all || p.mayRecompute(best.step)
			if found, made := plansOf(m, planFloor, planBelady, planDymem); copies && found < made {
				t.Fatalf("seed %d, beside %v: %d of %d schedules that copy", seed, best.step, found, made)
			}
			if found, made := plansOf(m, planSketch); recomputes && found < made {
				t.Fatalf("seed %d, beside %v: %d of %d schedules that recompute", seed, best.step, found, made)
			}
			if !copies && !recomputes && len(m.members) > 0 {
				t.Fatalf("seed %d, beside %v: %d schedules", seed, best.step, len(m.members))
			}
			for _, x := range m.members {
				if x.moved > 0 && !copies {
					t.Fatalf("seed %d, beside %v: %d bytes are copied", seed, best.step, x.moved)
				}
			}
			if !copies && recomputes {
				again++
			}
			if copies && !recomputes {
				copying++
			}
		}
	}
	if copying < 10 || again < 10 {
		t.Errorf("%d choices beside which only copies may be as fast, %d beside which only recomputation may", copying, again)
	}
}

// TestAdd adds joint's choice for amounts of memory, nothing beside one that takes no time, and else all that fits and may be as fast.
func TestAdd(t *testing.T) {
	hidden, others := 0, 0
	for seed := range uint64(60) {
		g, l := randomProblem(seed, 25)
		r := rand.New(rand.NewPCG(seed, 19))
		if r.IntN(2) == 0 {
			l.Link = link{0, 1e12, 1e12}
		}
		p := newProblem(g, l)
		_, top := draft.Over(g.Plain(), 0)
		for range 4 {
			m := &maker{problem: p}
			bytes := g.Least() + r.Int64N(top-g.Least()+1)
			if err := m.add(bytes); err != nil {
				t.Fatal(err)
			}
			c := newChooser(p)
			fresh := &maker{problem: p}
			best, err := fresh.choice(c)
			switch {
			case err != nil:
				if found, made := plansOf(m, planFloor, planBelady, planDymem, planSketch); found < made || m.last != nil {
					t.Fatalf("seed %d in %d bytes: %d of %d schedules", seed, bytes, found, made)
				}
				continue
			case !slices.ContainsFunc(m.members, func(x member) bool { return x.result == best.result }) && best.moved <= l.Host/2:
				t.Fatalf("seed %d in %d bytes: joint's choice is not there", seed, bytes)
			}
			want := best.step == p.Begin[p.Ops()]
			if m.hidden != want || want && len(m.members) > 1 || m.taste != fresh.taste || m.rung != 1 {
				t.Fatalf("seed %d in %d bytes: %+v, %d schedules, a choice of %v", seed, bytes, m.trail, len(m.members), best.step)
			}
			if want {
				hidden++
			} else if len(m.members) > 1 {
				others++
			}
		}
	}
	if hidden < 20 || others < 20 {
		t.Errorf("%d choices take no time, beside %d there are other schedules", hidden, others)
	}
}

// TestChoice takes the better of a new choice and of that before, and looks at all tastes for one of few amounts of memory. Between those it
// looks next to the best taste of the amount before, or at that alone if it was hidden.
func TestChoice(t *testing.T) {
	kept := 0
	for seed := range uint64(80) {
		g, l := randomProblem(seed, 25)
		p := newProblem(g, l)
		c := newChooser(p)
		for rung := range 6 {
			for taste := range len(c.prices) + 2 {
				for _, hidden := range []bool{false, true} {
					from, end := max(0, min(taste, len(c.prices)-1)-1), min(taste, len(c.prices)-1)+2
					tries := c.tries() / few
					switch {
					case rung%thorough == 0:
						from, end, tries = 0, len(c.prices), c.tries()/many
					case hidden:
						from, end = from+1, end-1
						if taste == 0 || len(c.prices) == 1 {
							from = 0
						}
					}
					want, err := c.first(from, end)
					began := want.taste
					if err == nil {
						c.improve(&want, tries)
					}
					m := &maker{problem: p, trail: trail{taste: taste, rung: rung, hidden: hidden}}
					got, failed := m.choice(c)
					if (err == nil) != (failed == nil) || err == nil && (got.result != want.result || m.taste != began) || m.rung != rung+1 {
						t.Fatalf("seed %d, amount %d, taste %d, hidden %v: %+v of taste %d, expected %+v of %d, %v",
							seed, rung, taste, hidden, got.result, m.taste, want.result, began, failed)
					}
				}
			}
		}
		kept += checkLast(t, c)
	}
	if kept < 5 {
		t.Errorf("%d choices of the amount before were better", kept)
	}
}

// checkLast gives a maker the best of all choices as that of the amount before: it never returns a worse one. It returns how many are better than
// the choice it would make.
func checkLast(t *testing.T, c *chooser) (kept int) {
	t.Helper()
	best, err := c.first(0, len(c.prices))
	if err != nil {
		return 0
	}
	c.improve(&best, c.tries())
	if _, err := c.actions(&best); err != nil {
		t.Fatal(err)
	}
	last := slices.Clone(c.aways())
	for taste := range c.prices {
		alone, failed := (&maker{problem: c.problem, trail: trail{taste: taste, rung: 1, hidden: true}}).choice(c)
		m := &maker{problem: c.problem, trail: trail{last: last, taste: taste, rung: 1, hidden: true}}
		got, err := m.choice(c)
		if _, short := errors.AsType[*draft.ShortError](failed); failed != nil && !short {
			t.Fatal(failed)
		}
		if err != nil || best.better(&got.result) || failed == nil && alone.better(&got.result) {
			t.Errorf("taste %d: %+v, %v, expected no worse than %+v and %+v", taste, got.result, err, best.result, alone.result)
		}
		if failed != nil || got.better(&alone.result) {
			kept++
		}
	}
	return kept
}

// TestAdopt takes what was away in another choice, if that is possible with the memory there is.
func TestAdopt(t *testing.T) {
	adopted, refused := 0, 0
	for seed := range uint64(200) {
		c, best, ok := firstChoice(seed, 30)
		if !ok {
			continue
		}
		if _, err := c.actions(&best); err != nil {
			t.Fatal(err)
		}
		last := slices.Clone(c.aways())
		if o, ok := c.adopt(last); !ok || !slices.Equal(o.share, best.share) || o.result != best.result {
			t.Fatalf("seed %d: %+v, expected %+v", seed, o.result, best.result)
		}
		adopted++
		if _, ok := c.adopt(nil); ok {
			t.Fatal("nothing is adopted")
		}
		p := newProblem(c.Graph, c.Limits)
		p.Limits.Device = c.Graph.Least()
		less := newChooser(p)
		o, ok := less.adopt(last)
		if !ok {
			refused++
		} else if o.peak > p.Limits.Device || o.step < p.Begin[p.Ops()] {
			t.Fatalf("seed %d: %d bytes in %d", seed, o.peak, p.Limits.Device)
		}
	}
	if adopted < 20 || refused < 10 {
		t.Errorf("%d choices were adopted, %d could not be with less memory", adopted, refused)
	}
}
