package scheduling

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
)

const (
	mib = int64(1) << 20
	ms  = time.Millisecond
)

// optionGraph is a chain whose operators can run in other ways, forward and backward.
func optionGraph(r *rand.Rand) *swap.Graph {
	g := &swap.Graph{Name: "chain"}
	const layers = 3
	for op := range int32(2 * layers) {
		o := swap.Op{Duration: time.Duration(10+r.IntN(40)) * ms, Base: 10 * mib}
		if op >= layers {
			o.Phase = swap.Backward
		}
		for range r.IntN(3) {
			o.Options = append(o.Options, swap.Option{Name: "w", Workspace: 1 + r.Int64N(400*mib), Duration: time.Duration(1+r.IntN(30)) * ms})
		}
		g.Ops = append(g.Ops, o)
	}
	for layer := range int32(layers) {
		g.Tensors = append(g.Tensors, swap.Tensor{
			Bytes: 50*mib + r.Int64N(200*mib), Made: layer, Uses: []int32{layer + 1, 2*layers - 1 - layer}, Layer: layer,
		})
		if layer+1 == layers {
			g.Tensors[layer].Uses = []int32{layers}
		}
	}
	return g
}

// bestOfAll returns the fastest step of all sets of options, with a schedule for each.
func bestOfAll(t *testing.T, g *swap.Graph, p policy.Policy, limits Limits) time.Duration {
	t.Helper()
	best := time.Duration(math.MaxInt64)
	var visit func(op int, chosen []swap.Op)
	visit = func(op int, chosen []swap.Op) {
		if op == len(g.Ops) {
			set := *g
			set.Ops = slices.Clone(chosen)
			m, err := Make(&set, p, limits)
			if _, short := errors.AsType[*policy.ShortError](err); err != nil && !short {
				t.Fatal(err)
			}
			if err == nil {
				best = min(best, m.Moved.Step)
			}
			return
		}
		plain := g.Ops[op]
		plain.Options = nil
		visit(op+1, append(chosen, plain))
		for _, o := range g.Ops[op].Options {
			way := plain
			way.Duration, way.Base = o.Duration, way.Base+o.Workspace
			visit(op+1, append(chosen, way))
		}
	}
	visit(0, nil)
	return best
}

// TestMakeChoosing compares what is chosen together with a schedule with all sets of options and a schedule for each. It is no optimum: the
// distance is logged, and no step may be slower than with the schedule that is made without options.
func TestMakeChoosing(t *testing.T) {
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	equal, cases, worst, moved := 0, 0, 1.0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		g := optionGraph(r)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		limits := Limits{Device: g.Least() + r.Int64N(300*mib), Host: 1 << 40, Link: link.Default()}
		got, err := MakeChoosing(g, auto, limits)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		plain, err := Make(g, auto, limits)
		if err != nil {
			t.Fatal(err)
		}
		if got.Moved.Peak > limits.Device || got.Moved.Step > plain.Moved.Step {
			t.Errorf("seed %d: %v in %d bytes of %d, without options %v", seed, got.Moved.Step, got.Moved.Peak, limits.Device, plain.Moved.Step)
		}
		best := bestOfAll(t, g, auto, limits)
		if got.Moved.Step < best {
			t.Errorf("seed %d: %v is faster than the fastest of all sets, %v", seed, got.Moved.Step, best)
		}
		cases++
		worst = max(worst, got.Moved.Step.Seconds()/best.Seconds())
		if got.Moved.Step == best {
			equal++
		}
		if len(got.Actions) > 0 {
			moved++
		}
	}
	t.Logf("%d of %d as fast as the fastest of all sets, the worst %.3f times as long; %d move something", equal, cases, worst, moved)
	if moved < cases/4 {
		t.Errorf("only %d of %d schedules move anything", moved, cases)
	}
}

// TestMakeChoosingMonotone has limits that grow. Where nothing moves, a step is never slower with more memory. With schedules that differ from
// limit to limit it can be: how often is logged.
func TestMakeChoosingMonotone(t *testing.T) {
	for _, name := range []string{"none", "auto"} {
		p, err := policy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		steps, slower, worst := 0, 0, 1.0
		for seed := range uint64(60) {
			g := optionGraph(rand.New(rand.NewPCG(seed, 0)))
			before := time.Duration(math.MaxInt64)
			for device := g.Least(); device < g.Least()+600*mib; device += 25 * mib {
				m, err := MakeChoosing(g, p, Limits{Device: device, Host: 1 << 40, Link: link.Default()})
				if isShort(err) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				steps++
				if m.Moved.Step > before {
					slower++
					worst = max(worst, m.Moved.Step.Seconds()/before.Seconds())
				}
				before = m.Moved.Step
			}
		}
		t.Logf("%s: %d of %d steps are slower than with 25 MiB less, the worst %.3f times as long", name, slower, steps, worst)
		if name == "none" && (slower > 0 || steps < 500) {
			t.Errorf("%d of %d steps are slower than with less memory", slower, steps)
		}
	}
}

// TestMakeChoosingMakesRoom has a workspace that is worth a copy, and one that fits nowhere.
func TestMakeChoosingMakesRoom(t *testing.T) {
	g := &swap.Graph{
		Ops: []swap.Op{
			{Duration: 10 * ms}, {Duration: 100 * ms}, {Duration: 500 * ms, Options: []swap.Option{
				{Name: "large", Workspace: 900 * mib, Duration: 100 * ms}, {Name: "huge", Workspace: 5000 * mib, Duration: ms}}},
			{Duration: 100 * ms, Phase: swap.Backward}, {Duration: 10 * ms, Phase: swap.Backward},
		},
		Tensors: []swap.Tensor{{Name: "kept", Bytes: 200 * mib, Uses: []int32{4}}},
	}
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range map[int64]struct {
		step  time.Duration
		moves bool
	}{
		250 * mib:  {720 * ms, false},
		1000 * mib: {320 * ms, true}, // the tensor is away while the workspace is there
		1100 * mib: {320 * ms, false},
	} {
		m, err := MakeChoosing(g, auto, Limits{Device: device, Host: 1 << 40, Link: link.Default()})
		if err != nil {
			t.Fatal(err)
		}
		if m.Moved.Step != want.step || len(m.Actions) > 0 != want.moves {
			t.Errorf("in %d MiB: %v, %d actions, want %v", device/mib, m.Moved.Step, len(m.Actions), want.step)
		}
	}
	_, err = MakeChoosing(g, auto, Limits{Device: 100 * mib, Host: 1 << 40, Link: link.Default()})
	if _, short := errors.AsType[*policy.ShortError](err); !short {
		t.Errorf("in too little memory: %v", err)
	}
}
