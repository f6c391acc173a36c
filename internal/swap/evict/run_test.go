package evict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// oldest is a memory without addresses, which evicts what was not used for longest.
type oldest struct{}

func (oldest) Place(r *Run, _ int32, bytes int64) int64 {
	for r.Lacks(bytes) > 0 {
		victim := None
		for t := range int32(len(r.Graph.Tensors)) {
			if r.Evictable(t) && (victim == None || r.Stale(t) > r.Stale(victim)) {
				victim = t
			}
		}
		if victim == None {
			return r.Lacks(bytes)
		}
		r.Evict(victim)
	}
	return 0
}

func (oldest) Drop(int32) {}

// TestRun has steps of operators of 10 ns that write tensors of a byte and read others.
func TestRun(t *testing.T) {
	type tensor struct {
		uses  []int32
		from  []int32
		fixed bool
	}
	for name, test := range map[string]struct {
		tensors []tensor // tensor i is written by operator i
		base    []int64  // of operators, if there is any
		device  int64
		actions string // f for Free, r for Recompute, with the tensor and the operator
	}{
		"room":                    {[]tensor{{uses: []int32{3}}, {uses: []int32{3}}, {uses: []int32{3}}}, nil, 3, ""},
		"evicted and recomputed":  {[]tensor{{uses: []int32{4}}, {uses: []int32{3}}, {uses: []int32{3}}}, nil, 2, "f0@2 r0@4"},
		"room for what is beside": {[]tensor{{uses: []int32{4}}, {uses: []int32{3}}}, []int64{0, 0, 0, 1, 0}, 2, "f0@3 r0@4"},
		"not what cannot come":    {[]tensor{{uses: []int32{4}, fixed: true}, {uses: []int32{4}}, {uses: []int32{3}}}, nil, 2, "f1@2 r1@4"},
		"not when its input ends": {[]tensor{{uses: []int32{3}, fixed: true}, {uses: []int32{5}, from: []int32{0}}, {uses: []int32{5}}, {uses: []int32{4}}}, nil, 3, "f2@3 r2@5"},
		// 1 is needed next where its input is used last: that is not too late.
		"with its input's last use": {[]tensor{{uses: []int32{4}, fixed: true}, {uses: []int32{4}, from: []int32{0}}, {uses: []int32{3}}}, nil, 2, "f1@2 r1@4"},
		"nor when its input's does": {
			[]tensor{{uses: []int32{1}, fixed: true}, {uses: []int32{2}, from: []int32{0}}, {uses: []int32{5}, from: []int32{1}}, {uses: []int32{6}}, {uses: []int32{5}}}, nil, 2,
			"f3@4 r3@6",
		},
		"with its input, which is dead": {[]tensor{{uses: []int32{1}}, {uses: []int32{4}, from: []int32{0}}, {uses: []int32{3}}, {uses: []int32{3}}}, nil, 2, "f1@3 r0@4 r1@4"},
		// 3 is older than 0 once 1 was recomputed from it.
		"an input is used": {
			[]tensor{{uses: []int32{2, 9}}, {uses: []int32{5}, from: []int32{0}}, {uses: []int32{8}}, {uses: []int32{7}}, {uses: []int32{5}}, {uses: []int32{6}}}, nil, 4,
			"f1@4 f2@5 r1@5 f3@5 r3@7 r2@8",
		},
		"too much": {[]tensor{{uses: []int32{2}}, {uses: []int32{2}}}, nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &swap.Graph{}
			for i, x := range test.tensors {
				made := swap.Tensor{Bytes: 1, Made: int32(i), Uses: x.uses, From: x.from, Recompute: 10}
				if x.fixed {
					made.Recompute = 0
				}
				g.Tensors = append(g.Tensors, made)
				for len(g.Ops) <= int(made.Last()) {
					g.Ops = append(g.Ops, swap.Op{Duration: 10})
				}
			}
			for op, bytes := range test.base {
				g.Ops[op].Base = bytes
			}
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			actions, err := Plan(draft.New(g, swap.Limits{Device: test.device}), oldest{})
			short := &draft.ShortError{}
			if wrong := err != nil && !errors.As(err, &short); wrong || (err != nil) != (name == "too much") {
				t.Fatal(err)
			}
			var words []string
			for _, a := range actions {
				words = append(words, fmt.Sprintf("%.1v%d@%d", a.Kind, a.Tensor, a.At))
			}
			if got := strings.Join(words, " "); got != test.actions {
				t.Errorf("got %q (%v), want %q", got, err, test.actions)
			}
		})
	}
}

// TestMostAgain gives up a step whose recomputations take more than ten times as long as its operators.
func TestMostAgain(t *testing.T) {
	for again, want := range map[time.Duration]bool{100: true, 101: false} {
		g := &swap.Graph{Ops: []swap.Op{{Duration: 3}, {Duration: 3}, {Duration: 4}}, Tensors: []swap.Tensor{
			{Bytes: 1, Made: 0, Uses: []int32{2}, Recompute: again},
			{Bytes: 1, Made: 1, Uses: []int32{1}},
		}}
		_, err := Plan(draft.New(g, swap.Limits{Device: 1}), oldest{})
		if short, isShort := errors.AsType[*draft.ShortError](err); (err == nil) != want || !want && (!isShort || short.Op != 2 || short.Bytes != 1) {
			t.Errorf("%v of recomputation, for a step of %v: %v", again, g.Compute(), err)
		}
	}
}
