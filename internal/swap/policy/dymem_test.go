package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// dymemStart returns the operator at which the copy of what is away through a gap begins, false if it is none of what is copied: the first
// convolution or the like that reads it if it is in the forward pass, or else the first reader, and not before it is written.
func dymemStart(p *problem, x draft.Gap) (at int32, ok bool) {
	t := &p.Graph.Tensors[x.Tensor]
	for _, op := range t.Uses {
		if !draft.Features(p.Graph.Ops[op].Type) {
			continue
		}
		if op >= p.Backward {
			op = t.Uses[0]
		}
		at = max(op, t.Made+1)
		return at, at < p.Backward
	}
	return 0, false
}

// plainDymem makes Dymem's trips step by step.
func plainDymem(p *problem) (trips []draft.Trip) {
	var ends []time.Duration
	now, lane, away := time.Duration(0), time.Duration(0), int64(0)
	for op := int32(0); op <= p.Backward && op < p.Ops(); op++ {
		for i := range trips {
			x := &trips[i]
			short := p.Plain[op]-away > p.Limits.Device
			if x.Free == 0 && op > x.After && (short || op == p.Backward || ends[i] <= now) {
				now, x.Free = max(now, ends[i]), op
				away += p.Graph.Tensors[x.Tensor].Bytes
			}
		}
		for _, x := range p.MainGaps() {
			if at, ok := dymemStart(p, x); ok && at == op {
				bytes := p.Graph.Tensors[x.Tensor].Bytes
				lane = max(lane, now) + p.Limits.Link.OutTime(bytes)
				trips, ends = append(trips, draft.Trip{Tensor: x.Tensor, Bytes: bytes, After: x.After, Out: op, Need: x.Before}), append(ends, lane)
			}
		}
		now += p.Graph.Ops[op].Duration
	}
	trips = slices.DeleteFunc(trips, func(x draft.Trip) bool { return x.Free >= x.Need })
	dymemBack(p, trips)
	return trips
}

// dymemBack brings back what each operator of the backward pass needs, and what those after it need up to the second convolution behind as far as
// memory allows.
func dymemBack(p *problem, trips []draft.Trip) {
	conv := slices.ContainsFunc(p.Graph.Ops, func(o swap.Op) bool { return o.Type == swap.Conv })
	for i := range trips {
		trips[i].Back = -1
	}
	used := func(op int32) int64 {
		bytes := p.Plain[op]
		for _, x := range trips {
			if away := x.Free <= op && op < x.Need && (x.Back < 0 || op < x.Back); away {
				bytes -= p.Graph.Tensors[x.Tensor].Bytes
			}
		}
		return bytes
	}
	bring := func(at, need int32) bool {
		for i := range trips {
			x := &trips[i]
			if x.Need != need || x.Back >= 0 {
				continue
			}
			for op := at; op < need; op++ {
				if used(op)+x.Bytes > p.Limits.Device {
					return false
				}
			}
			x.Back = at
		}
		return true
	}
	for op := p.Backward; op < p.Ops(); op++ {
		bring(op, op)
		heavy := 0
		for ahead := op; ahead < p.Ops(); ahead++ {
			kind := p.Graph.Ops[ahead].Type
			if conv && kind == swap.Conv || !conv && (kind == swap.Linear || kind == swap.Attention) {
				heavy++
			}
			if heavy == 3 || !bring(op, ahead) {
				break
			}
		}
	}
}

// TestDymem compares with trips made step by step, in networks with and without convolutions.
func TestDymem(t *testing.T) {
	moved, kept := 0, 0
	for seed := range uint64(300) {
		g, l := randomProblem(seed, 40)
		if rand.New(rand.NewPCG(seed, 20)).IntN(2) == 0 {
			for i := range g.Ops {
				if g.Ops[i].Type == swap.Conv {
					g.Ops[i].Type = swap.Norm
				}
			}
		}
		p := newProblem(g, l)
		want := plainDymem(p)
		for i := range want {
			want[i].After = 0 // not said of trips
		}
		d := dymem{problem: p, heavy: p.heavyTypes()}
		d.sendOut()
		all := len(d.trips)
		d.trips = draft.TakeAway(d.trips, func(x *draft.Trip) bool { return x.Free >= x.Need })
		if d.bringBack(); !slices.Equal(d.trips, want) {
			t.Fatalf("seed %d: %+v, expected %+v", seed, d.trips, want)
		}
		if actions, err := planDymem(p); err != nil || !slices.Equal(actions, p.Compile(want, p.Remake.Dead)) {
			t.Fatalf("seed %d: %s, %v", seed, show(g, actions), err)
		}
		moved, kept = moved+len(want), kept+all-len(want)
	}
	if moved < 300 || kept < 5 {
		t.Errorf("%d trips, %d that were given up", moved, kept)
	}
}
