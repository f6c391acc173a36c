package policy

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// gapsOverLimit lists the gaps of tensors in which an operator takes more than there is when nothing is moved, the first made tensor's first.
func gapsOverLimit(p *problem) []draft.Gap {
	var all []draft.Gap
	for t, x := range p.Graph.Tensors {
		for k, use := range x.Uses {
			after := x.Made
			if k > 0 {
				after = x.Uses[k-1]
			}
			if use > after+1 && slices.Max(p.Plain[after+1:use]) > p.Limits.Device {
				all = append(all, draft.Gap{Tensor: int32(t), After: after, Before: use})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b draft.Gap) int {
		return cmp.Compare(p.Graph.Tensors[a.Tensor].Made, p.Graph.Tensors[b.Tensor].Made)
	})
	return all
}

// TestCandidates compares candidates with the gaps of all tensors, and what is known of each with the graph.
func TestCandidates(t *testing.T) {
	able, unable := 0, 0
	for seed := range uint64(200) {
		g, l := randomProblem(seed, 40)
		if plain := g.Plain(); seed%2 == 0 {
			l.Device = plain[int(seed)%len(plain)] // some operators are just at the limit
		}
		p := newProblem(g, l)
		c := newChooser(p)
		gaps := gapsOverLimit(p)
		if len(gaps) != len(c.all) {
			t.Fatalf("seed %d: %d candidates, expected %d", seed, len(c.all), len(gaps))
		}
		for i, x := range c.all {
			var r draft.Recipe
			price, ok := p.Remake.Price(&r, x.Tensor, x.Before)
			fits := ok && p.AtLeast(x.Before, r.Needs)+price.Ghosts+price.Beside <= l.Device
			dear := math.Inf(1)
			if fits {
				dear = float64(price.Took) / float64(g.Tensors[x.Tensor].Bytes)
			}
			if x.Gap != gaps[i] || x.bytes != g.Tensors[x.Tensor].Bytes || x.copied != l.Link.OutTime(x.bytes) || x.able != fits || x.dear != dear {
				t.Fatalf("seed %d: candidate %+v, expected %+v, recomputed %v for %g ns a byte", seed, x, gaps[i], fits, dear)
			}
			if ok && !fits {
				unable++
			} else if ok {
				able++
			}
		}
		checkStall(t, c)
	}
	if able < 100 || unable < 100 {
		t.Errorf("%d candidates can be recomputed, %d could with more memory", able, unable)
	}
}

// TestAbleInJustEnough has just the memory that it takes to recompute a candidate, and a byte less.
func TestAbleInJustEnough(t *testing.T) {
	checked := 0
	for seed := range uint64(100) {
		g, l := randomProblem(seed, 40)
		c := newChooser(newProblem(g, l))
		for _, x := range c.all {
			if !x.able {
				continue
			}
			enough := c.AtLeast(x.Before, x.needs) + x.ghosts
			for _, c.Limits.Device = range []int64{enough, enough - 1} {
				if got := c.candidate(x.Gap); got.able != (c.Limits.Device == enough) {
					t.Fatalf("seed %d: %+v can be recomputed in %d bytes: %v", seed, x, c.Limits.Device, got.able)
				}
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d candidates", checked)
	}
}

// TestTries has 32 changes for each candidate, or as many as take tryWork where there are many.
func TestTries(t *testing.T) {
	for _, test := range []struct{ ops, candidates, want int }{
		{10, 0, 0}, {10, 1, 32}, {1000, 100, 3200}, {20_000, 1000, tryWork / 21_001}, {tryWork, 1000, 0},
	} {
		g := &swap.Graph{Ops: make([]swap.Op, test.ops)}
		c := &chooser{problem: &problem{Problem: &draft.Problem{Graph: g}}, all: make([]candidate, test.candidates)}
		if got := c.tries(); got != test.want {
			t.Errorf("%+v: %d changes", test, got)
		}
	}
}

// checkStall compares the price from which on copies are rather waited for with both ways of the largest candidate.
func checkStall(t *testing.T, c *chooser) {
	t.Helper()
	largest := int64(1)
	for _, x := range c.all {
		if x.bytes > largest {
			largest = x.bytes
		}
	}
	if want := float64(c.Limits.Link.OutTime(largest)+c.Limits.Link.InTime(largest)) / float64(largest); c.stall != want {
		t.Errorf("copies are worth %g ns a byte, expected %g", c.stall, want)
	}
}

// TestDividing has prices of candidates, and the few that divide them: all but the same ones count once.
func TestDividing(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct{ dear, want []float64 }{
		{nil, []float64{0, inf}},
		{[]float64{100}, []float64{0, 99, inf}},
		{[]float64{100, 100, 102, 102.5, 300}, []float64{0, 99, 0.99 * 102.5, 297, inf}},
		{[]float64{0, 0, 5}, []float64{0, 0, 0.99 * 5, inf}},
		{
			[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
			[]float64{0, .99 * 2, .99 * 4, .99 * 6, .99 * 8, .99 * 10, .99 * 12, .99 * 14, .99 * 16, inf},
		},
	} {
		c := &chooser{}
		for i, dear := range test.dear {
			c.all, c.cheap = append(c.all, candidate{dear: dear}), append(c.cheap, int32(i))
		}
		close := func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }
		if got := c.dividing(); !slices.EqualFunc(got, test.want, close) {
			t.Errorf("%v: got %v, want %v", test.dear, got, test.want)
		}
	}
}

// TestBlame bans what takes memory at an operator for being recomputed there or before, the most first, until enough is banned.
func TestBlame(t *testing.T) {
	blamed := 0
	for seed := range uint64(300) {
		g, l := randomProblem(seed, 40)
		c := newChooser(newProblem(g, l))
		if c.choose(taste{0, c.stall, true, 0}) != nil {
			continue
		}
		for op := range c.Ops() {
			var order []int32
			takes := map[int32]int64{}
			for i, x := range c.all {
				if c.share[i] == keep || c.share[i] == x.bytes || c.end[i] > op {
					continue
				}
				if takes[int32(i)] = heldFor(c, int32(i), op); takes[int32(i)] > 0 {
					order = append(order, int32(i))
				}
			}
			slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(takes[b], takes[a]) })
			for _, bytes := range []int64{1, 2000, 20_000, math.MaxInt64} {
				want := make([]bool, len(c.all))
				left := bytes
				for k := 0; k < len(order) && left > 0; k++ {
					want[order[k]] = true
					left -= takes[order[k]]
				}
				clear(c.banned)
				if got := c.blame(op, bytes); got != (len(order) > 0) || !slices.Equal(c.banned, want) {
					t.Fatalf("seed %d, operator %d, %d bytes: %v %v, expected %v", seed, op, bytes, got, c.banned, want)
				}
				blamed += len(order)
			}
		}
	}
	if blamed < 200 {
		t.Errorf("%d candidates were to blame", blamed)
	}
}

// heldFor returns the bytes of ghosts of a candidate at the operator that it is recomputed before, and of what came back for it and is not used
// yet.
func heldFor(c *chooser, i, op int32) int64 {
	x := &c.all[i]
	bytes := int64(0)
	if c.end[i] == op {
		bytes += x.ghosts
	}
	for j, y := range c.all {
		if slices.Contains(x.needs, y.Tensor) && c.end[j] == c.end[i] && y.Before > op {
			bytes += y.bytes
		}
	}
	return bytes
}

// TestShares lists what a candidate may be instead: kept, copied, and if it can be recomputed that, or a quarter, half or three quarters of
// its rows copied.
func TestShares(t *testing.T) {
	for _, test := range []struct {
		bytes, row int64
		able       bool
		now        int64
		want       []int64
	}{
		{bytes: 100, row: 10, now: keep, want: []int64{100}},
		{bytes: 100, row: 10, now: 100, want: []int64{keep}},
		{bytes: 100, able: true, now: keep, want: []int64{100, 0}},
		{bytes: 100, able: true, now: 0, want: []int64{keep, 100}},
		{bytes: 100, row: 10, able: true, now: keep, want: []int64{100, 0, 20, 50, 70}},
		{bytes: 100, row: 10, able: true, now: 50, want: []int64{keep, 100, 0, 20, 70}},
		{bytes: 100, row: 50, able: true, now: 100, want: []int64{keep, 0, 50}},
		{bytes: 100, row: 1, able: true, now: 0, want: []int64{keep, 100, 25, 50, 75}},
	} {
		g := stack("cc", 1, test.bytes)
		g.Tensors[0].Row = test.row
		c := &chooser{problem: newProblem(g, swapLimits(0)), all: []candidate{{bytes: test.bytes, able: test.able}}}
		if got := c.shares(0, test.now); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

// TestChange changes one share: nothing else that was away is touched, except that a tensor is copied in one part only; what was kept may go,
// but for the candidate itself.
func TestChange(t *testing.T) {
	changed, refused := 0, 0
	for seed := range uint64(100) {
		g, l := randomProblem(seed, 30)
		c := newChooser(newProblem(g, l))
		o, err := c.first(0, len(c.prices))
		if err != nil {
			continue
		}
		for i := range int32(len(c.all)) {
			for _, to := range c.shares(i, o.share[i]) {
				if !c.change(o.share, i, to) {
					refused++
					continue
				}
				changed++
				host := int64(0)
				for j, share := range c.share {
					x := &c.all[j]
					want := o.share[j]
					if x.Tensor == c.all[i].Tensor && to > 0 && want > 0 || j == int(i) {
						want = to
					}
					if share != want && (want != keep || j == int(i)) {
						t.Fatalf("seed %d: candidate %d has %d, expected %d, as %d has %d", seed, j, share, want, i, to)
					}
					host += max(0, share)
				}
				if host > l.Host || host != c.host || c.locked != -1 {
					t.Fatalf("seed %d: %d bytes copied of %d, %d locked", seed, host, l.Host, c.locked)
				}
				c.Limits.Host = host
				if made := slices.Clone(c.share); !c.change(o.share, i, to) || !slices.Equal(c.share, made) {
					t.Fatalf("seed %d: %d bytes are copied, and not where the host has just these", seed, host)
				}
				c.Limits.Host = l.Host
			}
		}
	}
	if changed < 500 || refused < 20 {
		t.Errorf("%d changes, %d refused", changed, refused)
	}
}

// TestByCost lists candidates that are away: by what they are waited for, and for what they take to be recomputed.
func TestByCost(t *testing.T) {
	costly := 0
	for seed := range uint64(300) {
		g, l := randomProblem(seed, 30)
		c := newChooser(newProblem(g, l))
		o, err := c.first(0, len(c.prices))
		if err != nil {
			continue
		}
		costs := costsOf(t, c, &o)
		var want []int32
		for i := range int32(len(c.all)) {
			if o.share[i] != keep {
				want = append(want, i)
			}
			if costs[i] > 0 {
				costly++
			}
		}
		slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(costs[b], costs[a]) })
		if got := c.byCost(&o); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, expected %v with the costs %v", seed, got, want, costs)
		}
	}
	if costly < 200 {
		t.Errorf("%d candidates cost time", costly)
	}
}

// costsOf returns the time that each candidate of an outcome costs.
func costsOf(t *testing.T, c *chooser, o *outcome) []time.Duration {
	t.Helper()
	actions, err := c.actions(o)
	if err != nil {
		t.Fatal(err)
	}
	costs := make([]time.Duration, len(c.all))
	waits := waitsOf(t, c.problem, actions)
	for i, x := range c.all {
		if o.share[i] == keep {
			continue
		}
		costs[i] = waits[x.Tensor]
		if o.share[i] != x.bytes {
			costs[i] += x.price
		}
	}
	return costs
}
