package check

import (
	"math"
	"strings"
	"testing"

	"gm/internal/swap"
)

// chain is three layers whose outputs, of 100 bytes, the backward pass reads in the opposite order; the last can only be copied.
func chain() *swap.Graph {
	g := &swap.Graph{Name: "chain"}
	for op := range int32(6) {
		o := swap.Op{Layer: min(op, 5-op), Base: 10}
		if op > 2 {
			o.Phase = swap.Backward
		}
		g.Ops = append(g.Ops, o)
	}
	for layer := range int32(3) {
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: 100, Made: layer, Uses: []int32{min(layer+1, 2), 5 - layer}, Layer: layer, Recompute: 50, Row: 10})
	}
	g.Tensors[1].From = []int32{0}
	g.Tensors[2].Recompute = 0
	return g
}

func do(kind swap.Kind, tensor, at int32, bytes int64) swap.Action {
	return swap.Action{Kind: kind, Tensor: tensor, At: at, Bytes: bytes}
}

func TestCheck(t *testing.T) {
	const offload, free, prefetch, recompute, await = swap.Offload, swap.Free, swap.Prefetch, swap.Recompute, swap.Await
	limits := swap.Limits{Device: 310, Host: 200}
	for name, test := range map[string]struct {
		limits  swap.Limits
		actions []swap.Action
		found   []string // parts of what is found
	}{
		"nothing": {limits: limits},
		"copied": {limits: limits, actions: []swap.Action{
			do(offload, 0, 1, 100), do(free, 0, 2, 0), do(prefetch, 0, 4, 100)}},
		"copied twice over": {limits: limits, actions: []swap.Action{
			do(offload, 0, 1, 100), do(free, 0, 2, 0), do(prefetch, 0, 3, 100), do(await, 0, 3, 0), do(free, 0, 4, 0), do(prefetch, 0, 5, 100)}},
		"in part": {limits: limits, actions: []swap.Action{
			do(offload, 0, 1, 50), do(free, 0, 2, 0), do(prefetch, 0, 4, 50), do(recompute, 0, 5, 0)}},
		"recomputed behind the last use": {limits: limits, actions: []swap.Action{
			do(free, 1, 3, 0), do(recompute, 1, 4, 0), do(recompute, 1, 5, 0), do(free, 1, 5, 0)}},

		"needed": {limits, []swap.Action{do(free, 0, 2, 0)}, []string{"operator 5, tensor 0: it is used"}},
		"needed by what is recomputed": {limits, []swap.Action{do(free, 0, 2, 0), do(free, 1, 3, 0), do(recompute, 1, 4, 0), do(recompute, 0, 5, 0)},
			[]string{"action 2 at operator 4, tensor 1: recompute: tensor 0, which it is computed from"}},
		"lost":              {limits, []swap.Action{do(free, 2, 3, 0)}, []string{"cannot be recomputed", "tensor 2: it is used"}},
		"in part lost":      {limits, []swap.Action{do(offload, 2, 3, 50), do(free, 2, 3, 0)}, []string{"cannot be recomputed", "it is used"}},
		"half a row":        {limits, []swap.Action{do(offload, 0, 1, 55)}, []string{"55 of the tensor's 100 bytes"}},
		"before it is made": {limits, []swap.Action{do(offload, 1, 1, 100)}, []string{"not written yet"}},
		"twice":             {limits, []swap.Action{do(offload, 0, 1, 100), do(offload, 0, 2, 100)}, []string{"a copy is on the host"}},
		"other bytes": {limits, []swap.Action{do(offload, 0, 1, 100), do(free, 0, 2, 0), do(prefetch, 0, 4, 50)},
			[]string{"50 bytes of the tensor, of which 100", "tensor 0: it is used"}},
		"never left": {limits, []swap.Action{do(offload, 0, 1, 100), do(prefetch, 0, 2, 100)}, []string{"is on the device"}},
		"never gone": {limits, []swap.Action{do(recompute, 0, 2, 0)}, []string{"all of the tensor is on the device"}},
		"behind its last use": {limits, []swap.Action{do(recompute, 1, 5, 0), do(offload, 1, 5, 100), do(prefetch, 1, 5, 100)},
			[]string{"offload: the tensor is not used any more", "prefetch: the tensor is not used any more"}},
		"no such tensor":   {limits, []swap.Action{do(free, 3, 1, 0)}, []string{"no such tensor"}},
		"no such action":   {limits, []swap.Action{do(9, 0, 1, 0)}, []string{"no such action"}},
		"no such operator": {limits, []swap.Action{do(free, 0, 6, 0)}, []string{"but 6 operators"}},
		"out of order":     {limits, []swap.Action{do(await, 0, 3, 0), do(await, 0, 2, 0)}, []string{"behind an action at operator 3"}},

		"device": {swap.Limits{Device: 309, Host: 200}, nil, []string{"operator 2: 1 bytes more", "operator 3: 1 bytes more"}},
		"device, while it comes back": {swap.Limits{Device: 300, Host: 200}, []swap.Action{do(offload, 0, 1, 100), do(free, 0, 2, 0), do(prefetch, 0, 3, 100)},
			[]string{"action 2 at operator 3, tensor 0: prefetch: with it 10 bytes", "operator 3: 10 bytes"}},
		"host": {swap.Limits{Device: 310, Host: 199}, []swap.Action{do(offload, 0, 1, 100), do(offload, 1, 2, 100)},
			[]string{"action 1 at operator 2, tensor 1: offload: with it 1 bytes", "slot of 100 bytes at 100 is not in the host's 199"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := chain(), &swap.Schedule{Actions: test.actions}
			found := Check(g, s, test.limits, Slots(g, test.actions))
			if len(found) != len(test.found) {
				t.Fatalf("got %v", found)
			}
			for i, part := range test.found {
				if !strings.Contains(found[i].String(), part) {
					t.Errorf("got %v, want %s", found[i], part)
				}
			}
		})
	}
}

// TestSlots has copies that take each other's places.
func TestSlots(t *testing.T) {
	const offload, free, prefetch = swap.Offload, swap.Free, swap.Prefetch
	g := chain()
	for i, bytes := range []int64{100, 60, 30} {
		g.Tensors[i].Bytes = bytes
	}
	g.Tensors[1].Uses = []int32{1, 2, 5}
	actions := []swap.Action{
		do(offload, 0, 1, 100), do(free, 0, 2, 0), do(offload, 1, 2, 60), do(prefetch, 0, 2, 100),
		do(offload, 2, 3, 30), // the first is not back for sure
		do(free, 1, 3, 0), do(prefetch, 1, 4, 60),
	}
	g.Tensors[0].Uses = []int32{1, 3, 5}
	limits := swap.Limits{Device: math.MaxInt64, Host: 190}
	slots := Slots(g, actions)
	want := []Slot{{0, 0, 100}, {2, 100, 60}, {4, 160, 30}}
	for i, s := range slots {
		if s != want[i] {
			t.Errorf("slot %d: %v, want %v", i, s, want[i])
		}
	}
	if found := Check(g, &swap.Schedule{Actions: actions}, limits, slots); len(found) > 0 {
		t.Error(found)
	}
	for name, spoil := range map[string]func() []Slot{
		"in use":       func() []Slot { return []Slot{slots[0], slots[1], {4, 70, 30}} },
		"has no slot":  func() []Slot { return slots[:2] },
		"of 60 bytes":  func() []Slot { return []Slot{slots[0], {2, 100, 50}, slots[2]} },
		"host's 190":   func() []Slot { return []Slot{slots[0], slots[1], {4, 161, 30}} },
		"slot of 1000": func() []Slot { return []Slot{slots[0], slots[1], {4, math.MaxInt64 - 10, 1000}} },
	} {
		found := Check(g, &swap.Schedule{Actions: actions}, limits, spoil())
		if len(found) != 1 || !strings.Contains(found[0].String(), name) {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestMost has a schedule that is wrong all over.
func TestMost(t *testing.T) {
	var actions []swap.Action
	for range 2 * Most {
		actions = append(actions, do(swap.Prefetch, 0, 3, 100))
	}
	if found := Check(chain(), &swap.Schedule{Actions: actions}, swap.Limits{Device: 1000, Host: 1000}, nil); len(found) != Most {
		t.Errorf("%d violations", len(found))
	}
}
