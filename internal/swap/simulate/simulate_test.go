package simulate

import (
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
	const offload, free, prefetch, recompute, settle, await = swap.Offload, swap.Free, swap.Prefetch, swap.Recompute, swap.Settle, swap.Await
	for name, test := range map[string]struct {
		actions []swap.Action
		want    want
	}{
		"nothing": {nil, want{step: 600, peak: 310, peakOp: 2}},
		"hidden": {[]swap.Action{{offload, 0, 1, 100}, {free, 0, 2, 0}, {prefetch, 0, 4, 100}},
			want{step: 600, peak: 210, peakOp: 1, host: 100}},
		"freed at once": {[]swap.Action{{offload, 1, 2, 100}, {free, 1, 3, 0}, {prefetch, 1, 4, 100}},
			want{step: 700, peak: 310, peakOp: 2, host: 100, in: 100}},
		"waits for the copy out": {[]swap.Action{{offload, 0, 2, 100}, {free, 0, 2, 0}, {prefetch, 0, 4, 100}},
			want{step: 700, peak: 210, peakOp: 1, host: 100, out: 100}},
		"settled":        {[]swap.Action{{offload, 0, 1, 100}, {settle, 0, 1, 0}}, want{step: 700, peak: 310, peakOp: 2, host: 100, out: 100}},
		"computed again": {[]swap.Action{{free, 0, 2, 0}, {recompute, 0, 5, 0}}, want{step: 650, peak: 210, peakOp: 1}},
		"half and half": {[]swap.Action{{offload, 0, 1, 50}, {free, 0, 2, 0}, {prefetch, 0, 5, 50}, {recompute, 0, 5, 0}},
			want{step: 650, peak: 210, peakOp: 1, host: 50, in: 25}},
		"awaited": {[]swap.Action{{offload, 0, 1, 100}, {free, 0, 2, 0}, {prefetch, 0, 3, 100}, {await, 0, 3, 0}},
			want{step: 700, peak: 310, peakOp: 3, host: 100, in: 100}},
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
