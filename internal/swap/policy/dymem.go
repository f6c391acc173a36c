package policy

import (
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planDymem copies what convolutions, pooling, activations and normalizations read, in either pass, while the first of them runs, or else
// the tensor's first reader. Memory is freed once the copy has ended and nothing of the forward pass reads the tensor any more; the
// compute stream waits for that only where memory is short, and at the end of the forward pass (Dymem, section 3.2). The order of the
// operators is the graph's; sections 3.1 and 3.3 are not about schedules.
//
// Algorithm 2 is realised as it seems meant: its search walks the layers that come next, and ends behind the second convolution, which the paper
// leaves open. It also ends where memory does.
func planDymem(p *problem) ([]swap.Action, error) {
	d := dymem{problem: p, heavy: p.heavyTypes()}
	d.sendOut()
	d.trips = draft.TakeAway(d.trips, func(x *draft.Trip) bool { return x.Free >= x.Need })
	d.bringBack()
	return p.Compile(d.trips, p.Remake.Dead), nil
}

type dymem struct {
	*problem
	draft.Clock
	heavy func(swap.OpType) bool
	trips []draft.Trip
	ends  []time.Duration // of the copies of trips to the host
	after []int32         // last use in the forward pass
}

// heavyTypes returns a test for the layers that take long to compute: convolutions or, in networks without them, matrix products.
func (p *problem) heavyTypes() func(swap.OpType) bool {
	for i := range p.Graph.Ops {
		if p.Graph.Ops[i].Type == swap.Conv {
			return func(kind swap.OpType) bool { return kind == swap.Conv }
		}
	}
	return func(kind swap.OpType) bool { return kind == swap.Linear || kind == swap.Attention }
}

// sendOut sets when copies to the host begin and when memory is freed. Memory that is not back by the end of the pass is waited for.
func (d *dymem) sendOut() {
	d.Link = d.Limits.Link
	starts := d.copiesBy()
	away := int64(0) // bytes that were freed
	var pending []int32
	for op := int32(0); op < min(d.Backward+1, d.Ops()); op++ {
		kept := pending[:0]
		for _, i := range pending {
			x := &d.trips[i]
			short := d.Plain[op]-away > d.Limits.Device || op == d.Backward
			if op <= d.after[i] || !short && d.ends[i] > d.Now {
				kept = append(kept, i)
				continue
			}
			d.Now = max(d.Now, d.ends[i])
			x.Free = op
			away += d.Graph.Tensors[x.Tensor].Bytes
		}
		pending = kept
		for _, x := range starts[op] {
			bytes := d.Graph.Tensors[x.Tensor].Bytes
			pending = append(pending, int32(len(d.trips)))
			d.trips = append(d.trips, draft.Trip{Tensor: x.Tensor, Bytes: bytes, Out: op, Need: x.Before})
			d.ends = append(d.ends, d.Copy(bytes))
			d.after = append(d.after, x.After)
		}
		d.Now += d.Graph.Ops[op].Duration
	}
}

// copiesBy returns the gaps of what is copied, by the operator at which the copy begins: the first of those types that reads the tensor, or
// its first reader of any type if those read it in the backward pass alone. So it is where only a concatenation reads the output of a branch.
func (d *dymem) copiesBy() [][]draft.Gap {
	starts := make([][]draft.Gap, d.Backward+1)
	for _, x := range d.MainGaps() {
		t := &d.Graph.Tensors[x.Tensor]
		i := slices.IndexFunc(t.Uses, func(op int32) bool { return draft.Features(d.Graph.Ops[op].Type) })
		if i < 0 {
			continue
		}
		op := t.Uses[i]
		if op >= d.Backward {
			op = t.Uses[0]
		}
		if at := max(op, t.Made+1); at < d.Backward {
			starts[at] = append(starts[at], x)
		}
	}
	return starts
}

// bringBack sets when copies to the device begin.
func (d *dymem) bringBack() {
	usage := append([]int64(nil), d.Plain...)
	wanted := make([][]int32, d.Ops()) // trips by need
	for i := range d.trips {
		x := &d.trips[i]
		x.Back = -1
		draft.Plus(usage, x.Free, x.Need, -d.Graph.Tensors[x.Tensor].Bytes)
		wanted[x.Need] = append(wanted[x.Need], int32(i))
	}
	for op := d.Backward; op < d.Ops(); op++ {
		d.fetch(op, op, wanted[op], usage)
		heavy := 0
		for ahead := op; ahead < d.Ops(); ahead++ {
			if d.heavy(d.Graph.Ops[ahead].Type) {
				heavy++
			}
			if heavy > 2 || !d.fetch(op, ahead, wanted[ahead], usage) {
				break
			}
		}
	}
}

// fetch lets copies of what operator need takes begin at operator at, if there is memory. It returns false if there is not.
func (d *dymem) fetch(at, need int32, wanted []int32, usage []int64) bool {
	for _, i := range wanted {
		x := &d.trips[i]
		if x.Back >= 0 {
			continue
		}
		bytes := d.Graph.Tensors[x.Tensor].Bytes
		for op := at; op < need; op++ {
			if usage[op]+bytes > d.Limits.Device {
				return false
			}
		}
		x.Back = at
		draft.Plus(usage, at, need, bytes)
	}
	return true
}
