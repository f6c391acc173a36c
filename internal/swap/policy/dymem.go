package policy

import (
	"slices"
	"time"

	"gm/internal/swap"
)

// planDymem copies what convolutions, pooling, activations and normalizations read, in either pass, while the first of them runs, or else
// the tensor's first reader. Memory is given back once the copy has ended and nothing of the forward pass reads the tensor any more; the
// compute stream waits for that only where memory is short, and at the end of the forward pass (Dymem, section 3.2). The order of the
// operators is the graph's; sections 3.1 and 3.3 are not about schedules.
//
// Algorithm 2 is taken as it is meant: its search walks the layers that come next, and ends behind the second convolution, which the paper
// leaves open. It also ends where memory does.
func planDymem(p *problem) ([]swap.Action, error) {
	d := dymem{problem: p, heavy: p.heavyTypes()}
	d.sendOut()
	d.trips = takeAway(d.trips, func(x *trip) bool { return x.free >= x.need })
	d.bringBack()
	return p.compile(d.trips, p.remake.dead), nil
}

type dymem struct {
	*problem
	clock
	heavy func(swap.OpType) bool
	trips []trip
	ends  []time.Duration // of the copies of trips to the host
	after []int32         // last use in the forward pass
}

// features says whether Dymem copies what an operator of a type reads. Other layers' tensors are few and small in its networks.
func features(kind swap.OpType) bool {
	return kind == swap.Conv || kind == swap.Pool || kind == swap.Activation || kind == swap.Norm
}

// heavyTypes returns what plays the part of convolutions in a network: the layers that take long to compute.
func (p *problem) heavyTypes() func(swap.OpType) bool {
	for i := range p.graph.Ops {
		if p.graph.Ops[i].Type == swap.Conv {
			return func(kind swap.OpType) bool { return kind == swap.Conv }
		}
	}
	return func(kind swap.OpType) bool { return kind == swap.Linear || kind == swap.Attention }
}

// sendOut sets when copies to the host begin and when memory is given back. Memory that is not back by the end of the pass is waited for.
func (d *dymem) sendOut() {
	d.link = d.limits.Link
	starts := d.copiesBy()
	away := int64(0) // bytes that were given back
	var pending []int32
	for op := int32(0); op < min(d.backward+1, d.ops()); op++ {
		kept := pending[:0]
		for _, i := range pending {
			x := &d.trips[i]
			short := d.plain[op]-away > d.limits.Device || op == d.backward
			if op <= d.after[i] || !short && d.ends[i] > d.now {
				kept = append(kept, i)
				continue
			}
			d.now = max(d.now, d.ends[i])
			x.free = op
			away += d.graph.Tensors[x.tensor].Bytes
		}
		pending = kept
		for _, x := range starts[op] {
			bytes := d.graph.Tensors[x.tensor].Bytes
			pending = append(pending, int32(len(d.trips)))
			d.trips = append(d.trips, trip{tensor: x.tensor, bytes: bytes, out: op, need: x.before})
			d.ends = append(d.ends, d.copy(bytes))
			d.after = append(d.after, x.after)
		}
		d.now += d.graph.Ops[op].Duration
	}
}

// copiesBy returns the gaps of what is copied, by the operator at which the copy begins: the first of those types that reads the tensor, or
// its first reader of any type if those read it in the backward pass alone. So it is where only a concatenation reads the output of a branch.
func (d *dymem) copiesBy() [][]gap {
	starts := make([][]gap, d.backward+1)
	for _, x := range d.mainGaps() {
		t := &d.graph.Tensors[x.tensor]
		i := slices.IndexFunc(t.Uses, func(op int32) bool { return features(d.graph.Ops[op].Type) })
		if i < 0 {
			continue
		}
		op := t.Uses[i]
		if op >= d.backward {
			op = t.Uses[0]
		}
		if at := max(op, t.Made+1); at < d.backward {
			starts[at] = append(starts[at], x)
		}
	}
	return starts
}

// bringBack sets when copies to the device begin.
func (d *dymem) bringBack() {
	usage := append([]int64(nil), d.plain...)
	wanted := make([][]int32, d.ops()) // trips by need
	for i := range d.trips {
		x := &d.trips[i]
		x.back = -1
		plus(usage, x.free, x.need, -d.graph.Tensors[x.tensor].Bytes)
		wanted[x.need] = append(wanted[x.need], int32(i))
	}
	for op := d.backward; op < d.ops(); op++ {
		d.fetch(op, op, wanted[op], usage)
		heavy := 0
		for ahead := op; ahead < d.ops(); ahead++ {
			if d.heavy(d.graph.Ops[ahead].Type) {
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
		if x.back >= 0 {
			continue
		}
		bytes := d.graph.Tensors[x.tensor].Bytes
		for op := at; op < need; op++ {
			if usage[op]+bytes > d.limits.Device {
				return false
			}
		}
		x.back = at
		plus(usage, at, need, bytes)
	}
	return true
}
