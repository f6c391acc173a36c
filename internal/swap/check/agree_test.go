package check_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/simulate"
)

// perByte is a link that copies a byte in a nanosecond, each way.
type perByte struct{}

func (perByte) OutTime(n int64) time.Duration { return time.Duration(n) }
func (perByte) InTime(n int64) time.Duration  { return time.Duration(n) }

// smallGraph makes a step of few operators and tensors, some of which can be recomputed, in parts or from others.
func smallGraph(r *rand.Rand) *swap.Graph {
	g := &swap.Graph{}
	for range 3 + r.IntN(8) {
		g.Ops = append(g.Ops, swap.Op{Duration: time.Duration(r.IntN(300)), Base: r.Int64N(50)})
	}
	for t := range int32(1 + r.IntN(4)) {
		made := r.IntN(len(g.Ops) - 1)
		x := swap.Tensor{Bytes: 10 * (1 + r.Int64N(20)), Made: int32(made)}
		for op := made + 1; op < len(g.Ops); op++ {
			if r.IntN(3) == 0 || op == len(g.Ops)-1 && len(x.Uses) == 0 {
				x.Uses = append(x.Uses, int32(op))
			}
		}
		if r.IntN(2) == 0 {
			x.Recompute, x.Row, x.Scratch = 50, 10, 30
			if t > 0 && g.Tensors[t-1].Made <= x.Made {
				x.From = []int32{t - 1}
			}
		}
		g.Tensors = append(g.Tensors, x)
	}
	return g
}

// roundTrips makes a schedule in which tensors leave and come back once or twice, mostly as they can.
func roundTrips(r *rand.Rand, g *swap.Graph) []swap.Action {
	var all []swap.Action
	for t := range g.Tensors {
		x := &g.Tensors[t]
		at, bytes := x.Made+1, x.Bytes
		if x.Row > 0 && r.IntN(2) == 0 {
			bytes = x.Row * r.Int64N(1+x.Bytes/x.Row)
		}
		do := func(kind swap.Kind) {
			at = min(at+int32(r.IntN(3)), int32(len(g.Ops)-1))
			all = append(all, swap.Action{Kind: kind, Tensor: int32(t), At: at, Bytes: bytes})
		}
		for trip := range r.IntN(3) {
			if bytes > 0 && trip == 0 {
				do(swap.Offload)
			}
			do(swap.Free)
			if bytes > 0 {
				do(swap.Prefetch)
			}
			if bytes < x.Bytes {
				do(swap.Recompute)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b swap.Action) int { return int(a.At - b.At) })
	return all
}

// mutate drops, doubles, moves or changes one action.
func mutate(r *rand.Rand, g *swap.Graph, actions []swap.Action) []swap.Action {
	all := slices.Clone(actions)
	if len(all) == 0 {
		return all
	}
	i := r.IntN(len(all))
	switch a := all[i]; r.IntN(5) {
	case 0:
		return slices.Delete(all, i, i+1)
	case 1:
		a.At = r.Int32N(int32(len(g.Ops)))
		all = append(all, a)
	case 2:
		all[i].At = min(max(0, a.At+r.Int32N(5)-2), int32(len(g.Ops)-1))
	case 3:
		all[i].Kind = swap.Kind(r.IntN(6))
	case 4:
		j := r.IntN(len(all))
		all[i], all[j] = all[j], a
		all[i].At, all[j].At = a.At, all[i].At
	}
	slices.SortStableFunc(all, func(a, b swap.Action) int { return int(a.At - b.At) })
	return all
}

// agree compares what the simulator and the proof say of a schedule: whether it is right, and its peaks. It returns whether it is.
func agree(t *testing.T, g *swap.Graph, actions []swap.Action) bool {
	t.Helper()
	r, err := simulate.Run(g, actions, perByte{}, nil)
	violations := func(device, host int64) []check.Violation {
		return check.Check(g, &swap.Schedule{Actions: actions}, swap.Limits{Device: device, Host: host}, nil)
	}
	found := violations(math.MaxInt64, math.MaxInt64)
	if (err == nil) != (len(found) == 0) {
		t.Errorf("the simulator says %v, the proof %v", err, found)
	}
	if err != nil || t.Failed() {
		return false
	}
	if found := violations(r.Peak, r.Host); len(found) > 0 {
		t.Errorf("with %d bytes of the device and %d of the host as simulated: %v", r.Peak, r.Host, found)
	}
	if len(violations(r.Peak-1, math.MaxInt64)) == 0 {
		t.Errorf("simulated are %d bytes of the device, proven are fewer", r.Peak)
	}
	if r.Host > 0 && len(violations(math.MaxInt64, r.Host-1)) == 0 {
		t.Errorf("simulated are %d bytes of the host, proven are fewer", r.Host)
	}
	return true
}

// agreeOn compares them for a schedule of a small graph, and for what changes make of it. It returns how many schedules are right, and how many not.
func agreeOn(t *testing.T, seed uint64) (right, wrong int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	g := smallGraph(r)
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	actions := roundTrips(r, g)
	for range 1 + r.IntN(4) {
		if agree(t, g, actions) {
			right++
		} else {
			wrong++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s of %+v", seed, describe(actions), g.Tensors)
		}
		actions = mutate(r, g, actions)
	}
	return right, wrong
}

func describe(actions []swap.Action) string {
	text := ""
	for _, a := range actions {
		text += fmt.Sprintf("%v of %d at %d (%d bytes), ", a.Kind, a.Tensor, a.At, a.Bytes)
	}
	return text
}

// TestSimulatorAgrees has enough schedules of each kind.
func TestSimulatorAgrees(t *testing.T) {
	right, wrong := 0, 0
	for seed := range uint64(60_000) {
		r, w := agreeOn(t, seed)
		right, wrong = right+r, wrong+w
	}
	if right < 10_000 || wrong < 10_000 {
		t.Errorf("%d schedules are right, %d are not", right, wrong)
	}
}

func FuzzSimulatorAgrees(f *testing.F) {
	for _, seed := range []uint64{1, 20909, 27661, 51297} { // where they did not
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { agreeOn(t, seed) })
}
