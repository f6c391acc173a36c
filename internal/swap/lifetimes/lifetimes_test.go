package lifetimes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/lifetimes"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
)

// small is a graph of four operators. The first writes a, which the last reads too, the second b, which the third reads.
func small() *swap.Graph {
	return &swap.Graph{
		Ops: make([]swap.Op, 4),
		Tensors: []swap.Tensor{
			{Name: "a", Bytes: 10, Made: 0, Uses: []int32{1, 3}, Recompute: 1},
			{Name: "b", Bytes: 20, Made: 1, Uses: []int32{2}},
		},
	}
}

func TestOf(t *testing.T) {
	beside := []lifetimes.Beside{{Bytes: 5, Made: 2, Last: 3}, {Bytes: 7, Made: -1, Last: 4}}
	for name, test := range map[string]struct {
		actions []swap.Action
		want    []lifetimes.Stay
	}{
		"nothing is moved": {nil, []lifetimes.Stay{
			{Tensor: -1, Bytes: 7, First: -1, Until: 4, From: 0, End: 7}, {Tensor: 0, Bytes: 10, First: 0, Until: 4, From: 1, End: 5},
			{Tensor: 1, Bytes: 20, First: 1, Until: 3, From: 2, End: 4}, {Tensor: -1, Bytes: 5, First: 2, Until: 4, From: 3, End: 6},
		}},
		"a goes and comes back": {[]swap.Action{
			{Kind: swap.Offload, Tensor: 0, At: 1, Bytes: 10}, {Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Prefetch, Tensor: 0, At: 3, Bytes: 10},
		}, []lifetimes.Stay{
			{Tensor: -1, Bytes: 7, First: -1, Until: 4, From: 0, End: 9}, {Tensor: 0, Bytes: 10, First: 0, Until: 2, From: 1, End: 3},
			{Tensor: 1, Bytes: 20, First: 1, Until: 3, From: 2, End: 5}, {Tensor: -1, Bytes: 5, First: 2, Until: 4, From: 4, End: 8},
			{Tensor: 0, Bytes: 10, First: 3, Until: 4, From: 6, End: 7},
		}},
	} {
		step, err := lifetimes.Of(small(), test.actions, beside)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(step.Stays, test.want) || step.Events != 2*int64(len(test.want)) {
			t.Errorf("%s: %d events\n%+v, want\n%+v", name, step.Events, step.Stays, test.want)
		}
	}
}

func TestWrongActions(t *testing.T) {
	free := swap.Action{Kind: swap.Free, Tensor: 0, At: 2}
	for want, actions := range map[string][]swap.Action{
		"there is no such tensor":                         {{Kind: swap.Free, Tensor: 2, At: 1}},
		"free of tensor 1 at operator 1: it is not writ":  {{Kind: swap.Free, Tensor: 1, At: 1}},
		"operator 3: tensor 0, which it reads: it is not": {free},
		"free of tensor 0 at operator 2: it is not on":    {free, free},
		"prefetch of tensor 0 at operator 2: it is on":    {{Kind: swap.Prefetch, Tensor: 0, At: 2, Bytes: 10}},
		"action 1 is at operator 1: an action before it":  {free, {Kind: swap.Free, Tensor: 0, At: 1}},
		"action 0 is at operator 4: an action before it":  {{Kind: swap.Free, Tensor: 0, At: 4}},
	} {
		if _, err := lifetimes.Of(small(), actions, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSimulation compares what lives at once with what package simulate finds in use. It counts what is beside the tensors of an operator
// from the operator's actions on, so that its peak may be higher.
func TestSimulation(t *testing.T) {
	for _, spec := range []string{"alexnet,batch=8", "resnet-32,batch=8", "inception-v4,batch=2", "gpt-7b,layers=3,seq=4Ki,device=h200"} {
		m, err := graphs.Build(spec)
		if err != nil {
			t.Fatal(err)
		}
		plain := slices.Max(m.Graph.Plain())
		if got := load(t, m.Graph, nil); got != plain {
			t.Errorf("%s: %d bytes at once, want %d", spec, got, plain)
		}
		for _, name := range []string{"all", "vdnn-all", "dymem", "belady", "auto"} {
			p, err := policy.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := p.Plan(m.Graph, swap.Limits{Device: plain, Host: 1 << 40, Link: link.Default()})
			if err != nil {
				t.Fatalf("%s: %s: %v", spec, name, err)
			}
			r, err := simulate.Run(m.Graph, s.Actions, link.Default(), nil)
			if err != nil {
				t.Fatalf("%s: %s: %v", spec, name, err)
			}
			if got := load(t, m.Graph, s.Actions); got > r.Peak || got < r.Peak*9/10 {
				t.Errorf("%s: %s: %d bytes at once, %d in the simulation", spec, name, got, r.Peak)
			}
		}
	}
}

func load(t *testing.T, g *swap.Graph, actions []swap.Action) int64 {
	t.Helper()
	step, err := lifetimes.Of(g, actions, lifetimes.OfBase(g))
	if err != nil {
		t.Fatalf("%s: %v", g.Name, err)
	}
	return step.Load(1)
}

func TestLoadRoundsUp(t *testing.T) {
	step, err := lifetimes.Of(small(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if one, many := step.Load(1), step.Load(16); one != 30 || many != 48 {
		t.Errorf("%d and %d bytes", one, many)
	}
}

// TestOfBase checks that what is beside the tensors adds up to Base, and that what came last goes first.
func TestOfBase(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g := &swap.Graph{Ops: make([]swap.Op, random.IntN(20))}
		for i := range g.Ops {
			g.Ops[i].Base = random.Int64N(8)
		}
		all := lifetimes.OfBase(g)
		sums := make([]int64, len(g.Ops))
		for _, b := range all {
			for op := max(b.Made, 0); op <= min(b.Last, int32(len(g.Ops)-1)); op++ {
				sums[op] += b.Bytes
			}
			for _, o := range all {
				if b.Made < o.Made && o.Made <= b.Last && b.Last < o.Last {
					t.Errorf("%+v and %+v cross", b, o)
				}
			}
		}
		for op, sum := range sums {
			if sum != g.Ops[op].Base {
				t.Fatalf("%v: operator %d has %d beside, want %d", all, op, sum, g.Ops[op].Base)
			}
		}
	}
	if got := fmt.Sprint(lifetimes.OfBase(&swap.Graph{Ops: []swap.Op{{Base: 3}, {Base: 5}, {Base: 4}, {Base: 3}}})); got != "[{1 1 1} {1 1 2} {3 -1 4}]" {
		t.Error(got)
	}
}
