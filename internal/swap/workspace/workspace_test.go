package workspace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
)

// perByte is a link that copies a byte in a nanosecond, each way.
type perByte struct{}

func (perByte) OutTime(n int64) time.Duration { return time.Duration(n) }
func (perByte) InTime(n int64) time.Duration  { return time.Duration(n) }

// randomGraph makes a step of a chain of operators, some of which can run in other ways, better ones or not.
func randomGraph(r *rand.Rand) *swap.Graph {
	g := &swap.Graph{}
	half := 2 + r.Int32N(2)
	for op := range 2 * half {
		o := swap.Op{Duration: time.Duration(50 + r.IntN(200)), Base: r.Int64N(50)}
		if op >= half {
			o.Phase = swap.Backward
		}
		for range r.IntN(3) {
			o.Options = append(o.Options, swap.Option{Name: "option", Workspace: r.Int64N(200), Duration: time.Duration(r.IntN(250))})
		}
		g.Ops = append(g.Ops, o)
	}
	for layer := range half {
		t := swap.Tensor{Bytes: 20 + r.Int64N(200), Made: layer, Uses: []int32{layer + 1}}
		if last := 2*half - 1 - layer; last > layer+1 {
			t.Uses = append(t.Uses, last)
		}
		g.Tensors = append(g.Tensors, t)
	}
	return g
}

// choices calls visit with each choice of options.
func choices(g *swap.Graph, visit func(Choice)) {
	c := slices.Repeat(Choice{Plain}, len(g.Ops))
	for {
		visit(c)
		op := 0
		for ; op < len(c); op++ {
			if c[op]++; int(c[op]) < len(g.Ops[op].Options) {
				break
			}
			c[op] = Plain
		}
		if op == len(c) {
			return
		}
	}
}

// step returns the time of a step, and whether it is proven to keep to a limit.
func step(t *testing.T, g *swap.Graph, actions []swap.Action, limit int64) (time.Duration, bool) {
	t.Helper()
	r, err := simulate.Run(g, actions, perByte{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong := check.Check(g, &swap.Schedule{Actions: actions}, swap.Limits{Device: limit, Host: math.MaxInt64}, nil)
	return r.Step, len(wrong) == 0
}

// TestFastest compares the choice with all others, under schedules of several policies.
func TestFastest(t *testing.T) {
	moved, chosen := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		g := randomGraph(r)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		most := slices.Max(g.Plain())
		limit := most - r.Int64N(most-g.Least()+1) + r.Int64N(100)
		for _, name := range []string{"none", "joint", "dymem", "vdnn-all"} {
			p, err := policy.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := p.Plan(g, swap.Limits{Device: limit, Host: math.MaxInt64, Link: perByte{}})
			if err != nil {
				continue // it has none
			}
			if len(s.Actions) > 0 {
				moved++
			}
			chosen += compareWithAll(t, g, s.Actions, limit)
			if t.Failed() {
				t.Fatalf("seed %d, policy %s, limit %d: %+v", seed, name, limit, g)
			}
		}
	}
	if moved < 100 || chosen < 1000 {
		t.Errorf("only %d schedules move anything, only %d options were chosen", moved, chosen)
	}
}

// compareWithAll compares the choice under a schedule with every other. It returns how many options were chosen.
func compareWithAll(t *testing.T, g *swap.Graph, actions []swap.Action, limit int64) (options int) {
	t.Helper()
	free, err := Free(g, actions, limit)
	if err != nil {
		t.Fatal(err)
	}
	for op, bytes := range g.Alone() {
		if free[op] > limit-bytes {
			t.Errorf("operator %d has %d bytes under a schedule, and %d alone", op, free[op], limit-bytes)
		}
	}
	c := Fastest(g, free)
	got, fits := step(t, c.Apply(g), actions, limit)
	if !fits {
		t.Errorf("%v takes more than the limit", c)
	}
	best := time.Duration(math.MaxInt64)
	choices(g, func(other Choice) {
		if took, fits := step(t, other.Apply(g), actions, limit); fits {
			best = min(best, took)
		}
	})
	if got != best {
		t.Errorf("%v takes %v, the best %v", c, got, best)
	}
	for _, k := range c {
		if k != Plain {
			options++
		}
	}
	return options
}

// TestMonotone has limits that grow under one schedule.
func TestMonotone(t *testing.T) {
	for seed := range uint64(100) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 1)))
		var before, beforeGrown time.Duration = math.MaxInt64, math.MaxInt64
		for limit := g.Least(); limit < g.Least()+1000; limit += 7 {
			free, err := Free(g, nil, limit)
			if err != nil {
				t.Fatal(err)
			}
			took := Fastest(g, free).Apply(g).Compute()
			grown := Fastest(g, InSteps(free, 32)).Apply(g).Compute()
			if took > before || grown > beforeGrown || took > grown {
				t.Fatalf("seed %d, limit %d: %v, in steps %v; with less memory %v, %v", seed, limit, took, grown, before, beforeGrown)
			}
			before, beforeGrown = took, grown
		}
		if want := Within(g, math.MaxInt64).Apply(g).Compute(); before != want {
			t.Errorf("seed %d: with all memory a step takes %v, the fastest %v", seed, before, want)
		}
	}
}

// TestWays has an operator with ways of which some are worse than others in every respect.
func TestWays(t *testing.T) {
	g := &swap.Graph{Ops: []swap.Op{{Duration: 100, Base: 5, Options: []swap.Option{
		{Name: "slower", Workspace: 10, Duration: 120}, {Name: "equal", Workspace: 20, Duration: 80}, {Name: "lean", Workspace: 15, Duration: 80},
		{Name: "heavier", Workspace: 25, Duration: 80},
		{Name: "bare", Workspace: 0, Duration: 95}, {Name: "fast", Workspace: 30, Duration: 10},
	}}}}
	for free, want := range map[int64]string{-3: "bare", 0: "bare", 14: "bare", 15: "lean", 20: "lean", 29: "lean", 30: "fast", 1000: "fast"} {
		c := Fastest(g, []int64{free})
		if got := g.Ops[0].Options[c[0]]; got.Name != want {
			t.Errorf("with %d bytes %s, want %s", free, got.Name, want)
		}
		o := g.Ops[0].Options[c[0]]
		if applied := c.Apply(g).Ops[0]; applied.Base != 5+o.Workspace || applied.Duration != o.Duration || applied.Options != nil {
			t.Errorf("applied: %+v", applied)
		}
	}
	if got := InSteps([]int64{-5, 7, 8, 20}, 8); !slices.Equal(got, []int64{0, 0, 8, 16}) {
		t.Errorf("in steps of 8: %v", got)
	}
}
