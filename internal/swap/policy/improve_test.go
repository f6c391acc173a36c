package policy

import (
	"math"
	"math/rand/v2"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// firstChoice returns a chooser of a random problem and its first choice, false if there is none or it cannot be improved.
func firstChoice(seed uint64, most int) (*chooser, outcome, bool) {
	g, l := randomProblem(seed, most)
	c := newChooser(newProblem(g, l))
	best, err := c.first(0, len(c.prices))
	return c, best, err == nil && best.step > c.Begin[c.Ops()]
}

// TestImproveEnds improves choices for as long as it takes: no change of a single share makes them better, unless steps cannot be faster.
func TestImproveEnds(t *testing.T) {
	improved := 0
	for seed := range uint64(500) {
		c, best, ok := firstChoice(seed, 25)
		if !ok {
			continue
		}
		before := best.result
		if c.improve(&best, 1<<30); best.better(&before) {
			improved++
		}
		if o, err := c.evaluateShares(best.share); err != nil || o.result != best.result {
			t.Fatalf("seed %d: %+v is said to be %+v, %v", seed, o.result, best.result, err)
		}
		if best.step == c.Begin[c.Ops()] {
			continue
		}
		for i := range int32(len(c.all)) {
			for _, share := range c.shares(i, best.share[i]) {
				if best.share[i] == keep || !c.change(best.share, i, share) {
					continue
				}
				if o, err := c.evaluate(1 << 62); err == nil && o.better(&best.result) {
					t.Fatalf("seed %d: a step of %v, and of %v if candidate %d has %d instead of %d", seed, best.step, o.step, i, share, best.share[i])
				}
			}
		}
	}
	if improved < 20 {
		t.Errorf("%d choices were improved", improved)
	}
}

// evaluateShares simulates some shares.
func (c *chooser) evaluateShares(share []int64) (outcome, error) {
	copy(c.share, share)
	return c.evaluate(1 << 62)
}

// TestRound compares rounds with plain ones: after each failure twice as many changes of a kind are passed over, and one more, until one helps.
func TestRound(t *testing.T) {
	passed, helped := 0, 0
	for seed := range uint64(150) {
		for _, everyone := range []bool{false, true} {
			c, best, ok := firstChoice(seed, 40)
			if !ok {
				continue
			}
			want, left, better := best, int(seed*7%400), false
			all := &trial{chooser: c, best: &best, everyone: everyone, patience: map[kind]backoff{}, left: left}
			all.round()

			next, wait := map[kind]int{}, map[kind]int{}
			one := &trial{chooser: c, best: &want}
			for _, i := range c.byCost(&want) {
				for _, share := range c.shares(i, want.share[i]) {
					k := kind{c.all[i].bytes, c.all[i].price, want.share[i], share}
					if wait[k] > 0 && !everyone && left > 0 {
						wait[k]--
						passed++
						continue
					}
					if left == 0 {
						break
					}
					left--
					if one.try(i, share) {
						next[k], wait[k], better = 0, 0, true
						helped++
						break
					}
					next[k] = 2*next[k] + 1
					wait[k] = next[k]
				}
			}
			if all.left != left || all.better != better || best.result != want.result {
				t.Fatalf("seed %d: %+v, %v with %d changes left, expected %+v, %v with %d", seed, best.result, all.better, all.left, want.result, better, left)
			}
		}
	}
	if passed < 100 || helped < 50 {
		t.Errorf("%d changes were passed over, %d helped", passed, helped)
	}
}

// TestImproveStops makes no more changes than it may, and none where the step cannot be faster.
func TestImproveStops(t *testing.T) {
	for seed := range uint64(40) {
		c, best, ok := firstChoice(seed, 25)
		if !ok {
			continue
		}
		before := best.result
		if c.improve(&best, 0); best.result != before {
			t.Errorf("seed %d: better without a change", seed)
		}
		best.step = c.Begin[c.Ops()]
		fastest := best.result
		if c.improve(&best, 1000); best.result != fastest {
			t.Errorf("seed %d: better than what cannot be faster", seed)
		}
	}
}

// TestImproveLeavesTheFastest changes no choice whose step cannot be faster, though others copy less.
func TestImproveLeavesTheFastest(t *testing.T) {
	left, more := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 25))
		g := stack("cccccccccc", 1000, 1)
		for i := range g.Tensors {
			g.Tensors[i].Bytes = 1000 + r.Int64N(9000)
		}
		_, top := draft.Over(g.Plain(), 0)
		c := newChooser(newProblem(g, swap.Limits{Device: g.Least() + r.Int64N(top-g.Least()), Host: math.MaxInt64, Link: link{0, 20e9, 20e9}}))
		least := int64(math.MaxInt64)
		var all []outcome
		for i := range c.prices {
			for _, how := range c.tastes(i) {
				if o, err := c.attempt(how, fewBans); err == nil && o.step == g.Compute() {
					all = append(all, o)
					least = min(least, o.moved)
				}
			}
		}
		for _, o := range all {
			before := o.result
			if c.improve(&o, 1000); o.result != before {
				t.Fatalf("seed %d: %+v became %+v", seed, before, o.result)
			}
			if left++; o.moved > least {
				more++
			}
		}
	}
	if left < 50 || more < 3 {
		t.Errorf("%d choices, %d of which copy more than others", left, more)
	}
}
