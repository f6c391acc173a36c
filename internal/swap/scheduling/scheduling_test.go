package scheduling

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gm/internal/swap/check"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"

	"gm/internal/swap"
)

// TestMeasured compares what is foreseen of a step that was recorded on an H200 with what was measured there (8 Llama layers,
// 32768 tokens): seconds and bytes of a step with nothing moved, and of one in the memory that recomputing each layer takes.
func TestMeasured(t *testing.T) {
	g := recorded(t)
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Make(g.Graph, auto, Limits{Device: 21306034176, Host: 100 << 30, Link: link.Default()})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "step with nothing moved", m.Plain.Step.Seconds(), 1.1072, 0.05)
	near(t, "peak with nothing moved", float64(m.Plain.Peak), 58.50e9, 0.01)
	near(t, "step", m.Moved.Step.Seconds(), 1.1651, 0.05)
	near(t, "peak", float64(m.Moved.Peak), 21.21e9, 0.01)
	limits := swap.Limits{Device: 21306034176, Host: m.Meta.HostPeak, Link: link.Default()}
	for _, v := range check.Check(g.Graph, m.Schedule.Schedule, limits, check.Slots(g.Graph, m.Actions)) {
		t.Error(v)
	}
}

// TestContention makes a schedule for a GPU beside which others copy as well.
func TestContention(t *testing.T) {
	g := recorded(t)
	floor, err := policy.Lookup("floor")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := link.Read("../../../experiments/swap/results/link-2-gpus.json")
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Make(g.Graph, floor, Limits{Device: 30 << 30, Host: 100 << 30, Link: shared})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := Make(g.Graph, floor, Limits{Device: 30 << 30, Host: 100 << 30, Link: shared, GPUs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if beside.Moved.Step <= alone.Moved.Step {
		t.Errorf("with two GPUs a step takes %v, with one %v", beside.Moved.Step, alone.Moved.Step)
	}
}

// TestSpare has the forward pass take less time than in the recorded step, which schedules that leave some of the link alone suffer less from.
func TestSpare(t *testing.T) {
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	g := recorded(t).Graph
	faster := *g
	faster.Ops = slices.Clone(g.Ops)
	for i := range faster.Ops {
		if op := &faster.Ops[i]; op.Phase == swap.Forward {
			op.Duration = op.Duration * 95 / 100
		}
	}
	var steps []time.Duration
	for _, spare := range []float64{0, 0.05} {
		m, err := Make(g, auto, Limits{Device: 40950612684, Host: 100 << 30, Link: link.Default(), Spare: spare})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := simulate.Run(g, m.Actions, link.Default(), nil); err != nil || again.Step != m.Moved.Step {
			t.Errorf("spare %v: the step is foreseen as %v, on the whole link it takes %v, %v", spare, m.Moved.Step, again.Step, err)
		}
		r, err := simulate.Run(&faster, m.Actions, link.Default(), nil)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, r.Step)
	}
	if steps[1] >= steps[0] {
		t.Errorf("steps of a faster forward pass take %v with the whole link in use, %v with some of it left alone", steps[0], steps[1])
	}
}

func TestShort(t *testing.T) {
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Make(recorded(t).Graph, auto, Limits{Device: 1 << 30, Host: 100 << 30, Link: link.Default()})
	if short, ok := errors.AsType[*policy.ShortError](err); !ok || short.Bytes <= 0 {
		t.Errorf("the error is %v", err)
	}
}

func recorded(t *testing.T) *store.Graph {
	t.Helper()
	g, err := store.ReadGraph("../../../testdata/steps/llama-32k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func near(t *testing.T, what string, foreseen, measured, within float64) {
	t.Helper()
	if ratio := foreseen / measured; ratio < 1-within || ratio > 1+within {
		t.Errorf("%s: %.4g foreseen, %.4g measured: %.3f", what, foreseen, measured, ratio)
	}
}
