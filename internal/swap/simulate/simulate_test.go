package simulate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
)

// perByte is a link that copies a byte in a nanosecond, each way.
type perByte struct{}

func (perByte) OutTime(n int64) time.Duration { return time.Duration(n) }
func (perByte) InTime(n int64) time.Duration  { return time.Duration(n) }

// chain is three layers whose outputs, of 100 bytes, the backward pass reads in the opposite order. Each operator takes 100 ns.
func chain() *swap.Graph {
	g := &swap.Graph{Name: "chain"}
	for op := range int32(6) {
		o := swap.Op{Layer: min(op, 5-op), Duration: 100, Base: 10}
		if op > 2 {
			o.Phase = swap.Backward
		}
		g.Ops = append(g.Ops, o)
	}
	for layer := range int32(3) {
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: 100, Made: layer, Uses: []int32{min(layer+1, 2), 5 - layer}, Layer: layer, Recompute: 50, Row: 10})
	}
	return g
}

func TestRun(t *testing.T) {
	type want struct {
		step   time.Duration
		peak   int64
		peakOp int32
		host   int64
		out    time.Duration // waited for
		in     time.Duration
	}
	do := func(kind swap.Kind) func(tensor, at int32, bytes int64) swap.Action {
		return func(tensor, at int32, bytes int64) swap.Action {
			return swap.Action{Kind: kind, Tensor: tensor, At: at, Bytes: bytes}
		}
	}
	offload, free, prefetch, recompute := do(swap.Offload), do(swap.Free), do(swap.Prefetch), do(swap.Recompute)
	settle, await := do(swap.Settle), do(swap.Await)
	for name, test := range map[string]struct {
		actions []swap.Action
		want    want
	}{
		"nothing": {nil, want{step: 600, peak: 310, peakOp: 2}},
		"hidden": {[]swap.Action{offload(0, 1, 100), free(0, 2, 0), prefetch(0, 4, 100)},
			want{step: 600, peak: 210, peakOp: 1, host: 100}},
		"freed at once": {[]swap.Action{offload(1, 2, 100), free(1, 3, 0), prefetch(1, 4, 100)},
			want{step: 700, peak: 310, peakOp: 2, host: 100, in: 100}},
		"waits for the copy out": {[]swap.Action{offload(0, 2, 100), free(0, 2, 0), prefetch(0, 4, 100)},
			want{step: 700, peak: 210, peakOp: 1, host: 100, out: 100}},
		"settled":    {[]swap.Action{offload(0, 1, 100), settle(0, 1, 0)}, want{step: 700, peak: 310, peakOp: 2, host: 100, out: 100}},
		"recomputed": {[]swap.Action{free(0, 2, 0), recompute(0, 5, 0)}, want{step: 650, peak: 210, peakOp: 1}},
		"half and half": {[]swap.Action{offload(0, 1, 50), free(0, 2, 0), prefetch(0, 5, 50), recompute(0, 5, 0)},
			want{step: 650, peak: 210, peakOp: 1, host: 50, in: 25}},
		"awaited": {[]swap.Action{offload(0, 1, 100), free(0, 2, 0), prefetch(0, 3, 100), await(0, 3, 0)},
			want{step: 700, peak: 310, peakOp: 3, host: 100, in: 100}},
		// The memory that is freed may be another's: the copy back into it has to end first.
		"freed at once after a copy back": {[]swap.Action{offload(0, 1, 100), free(0, 2, 0), prefetch(0, 3, 100), free(0, 3, 0), recompute(0, 5, 0)},
			want{step: 750, peak: 310, peakOp: 3, host: 100, in: 100}},
		// Until the first tensor's use nothing has waited for its copy back: the second one's needs other memory of the host.
		"on the host until it is waited for": {[]swap.Action{offload(0, 1, 100), free(0, 2, 0), prefetch(0, 4, 100), offload(1, 4, 100)},
			want{step: 600, peak: 210, peakOp: 1, host: 200}},
		// This copy is not copied back: it is there until the last use, and not just until the next wait.
		"copied again behind the last copy back": {[]swap.Action{offload(0, 1, 100), free(0, 2, 0), prefetch(0, 3, 100), await(0, 3, 0), offload(0, 3, 100),
			await(0, 4, 0), offload(1, 4, 100)}, want{step: 700, peak: 310, peakOp: 3, host: 200, in: 100}},
		// What is recomputed is freed before the operator, but both are there at once.
		"a part recomputed and freed": {[]swap.Action{offload(1, 2, 50), free(1, 3, 0), prefetch(1, 3, 50), recompute(1, 4, 0), free(1, 4, 0), recompute(1, 4, 0)},
			want{step: 675, peak: 310, peakOp: 2, host: 50, in: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(chain(), test.actions, perByte{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := want{r.Step, r.Peak, r.PeakOp, r.Host, r.Stalls[WaitOut], r.Stalls[WaitIn]}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestPeak frees before an operator that takes a lot: what is freed is not in use beside it.
func TestPeak(t *testing.T) {
	g := chain()
	g.Ops[2].Base = 1000
	free := []swap.Action{{Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Recompute, Tensor: 0, At: 5}}
	g.Tensors[2].Made, g.Tensors[2].Uses = 3, []int32{3}
	r, err := Run(g, free, perByte{}, nil)
	if err != nil || r.Peak != 1100 || r.PeakOp != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRefusedFree frees what cannot be restored: its copy on the host was for the last copy back.
func TestRefusedFree(t *testing.T) {
	g := chain()
	g.Tensors[0].Recompute = 0
	g.Tensors[0].Uses = []int32{1, 4, 5}
	_, err := Run(g, []swap.Action{
		{Kind: swap.Offload, Tensor: 0, At: 1, Bytes: 100}, {Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Prefetch, Tensor: 0, At: 3, Bytes: 100},
		{Kind: swap.Free, Tensor: 0, At: 5},
	}, perByte{}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "action 3, free of tensor 0") {
		t.Errorf("the error is %v", err)
	}
}

// TestRefusedBehind copies what is not used any more.
func TestRefusedBehind(t *testing.T) {
	again := []swap.Action{{Kind: swap.Recompute, Tensor: 2, At: 4}, {Kind: swap.Offload, Tensor: 2, At: 4, Bytes: 100}}
	if _, err := Run(chain(), again, perByte{}, nil); !errors.Is(err, errOver) {
		t.Errorf("the error is %v", err)
	}
}

func TestRefused(t *testing.T) {
	for name, a := range map[string]swap.Action{
		"no such action": {Kind: 17, At: 1},
		"no such tensor": {Kind: swap.Free, Tensor: 3, At: 1},
		"not written":    {Kind: swap.Offload, At: 0, Bytes: 100},
		"half a row":     {Kind: swap.Offload, At: 1, Bytes: 15},
		"lost":           {Kind: swap.Free, At: 2},
		"not gone":       {Kind: swap.Prefetch, At: 2, Bytes: 100},
		"whole":          {Kind: swap.Recompute, At: 2},
		"behind the end": {Kind: swap.Free, At: 6},
	} {
		if r, err := Run(chain(), []swap.Action{a}, perByte{}, nil); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestProgram has operators, recomputing and copies wait for the program that launches them, and for what it does for actions before.
func TestProgram(t *testing.T) {
	handling := swap.Handling{swap.Offload: 30, swap.Free: 5, swap.Prefetch: 40}
	for name, test := range map[string]struct {
		launch, relaunch time.Duration
		actions          []swap.Action
		want             time.Duration
	}{
		"ahead":           {launch: 90, want: 600},
		"behind":          {launch: 150, want: 900},
		"actions, ahead":  {launch: 60, actions: []swap.Action{{Kind: swap.Offload, Tensor: 0, At: 1, Bytes: 100}, {Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Prefetch, Tensor: 0, At: 4, Bytes: 100}}, want: 600},
		"actions, behind": {launch: 150, actions: []swap.Action{{Kind: swap.Offload, Tensor: 0, At: 1, Bytes: 100}, {Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Prefetch, Tensor: 0, At: 4, Bytes: 100}}, want: 975},
		// The first five operators have ended at 750, when the program has freed the tensor. What is recomputed takes 50, and is launched in 70.
		"recomputed": {launch: 150, relaunch: 70, actions: []swap.Action{{Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Recompute, Tensor: 0, At: 5}}, want: 975},
		// The copy back begins at 880, when the program has come to it, and the last operator waits for its end.
		"a late copy": {launch: 150, actions: []swap.Action{{Kind: swap.Offload, Tensor: 0, At: 1, Bytes: 100}, {Kind: swap.Free, Tensor: 0, At: 2}, {Kind: swap.Prefetch, Tensor: 0, At: 5, Bytes: 100}}, want: 1025},
	} {
		g := chain()
		g.Handling = handling
		for i := range g.Ops {
			g.Ops[i].Launch = test.launch
		}
		g.Tensors[0].Relaunch = test.relaunch
		r, err := Run(g, test.actions, perByte{}, nil)
		if err != nil || r.Step != test.want {
			t.Errorf("%s: %v, %v, expected %v", name, r.Step, err, test.want)
		}
	}
}
