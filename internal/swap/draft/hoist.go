package draft

import (
	"math"
	"time"
)

// Hoist sets when the copies of trips to the device begin: late, but early enough for each to end in time if nothing else is waited for, and
// when memory allows. Usage is the bytes in use at each operator if all trips end when the tensor is needed; Hoist adds to it. Begin is when each
// operator begins.
func (p *Problem) Hoist(trips []Trip, usage []int64, begin []time.Duration) {
	order := p.ByNeed(trips)
	want := Zeroed(p.spare.want, len(trips))
	p.spare.want = want
	lane := time.Duration(math.MaxInt64)
	for i := len(order) - 1; i >= 0; i-- {
		x := &trips[order[i]]
		if x.Bytes > 0 {
			lane = min(lane, begin[x.Need]) - p.Limits.Link.InTime(x.Bytes)
			want[order[i]] = lastBy(begin, lane)
		}
	}
	p.Lift(trips, order, want, usage)
}

// lastBy returns the last operator that begins by a time, or the first operator of all.
func lastBy(begin []time.Duration, at time.Duration) int32 { return max(0, FirstAt(begin, at+1)-1) }

// Lift lets the copies of trips to the device begin at the wanted operators, or as soon after them as there is memory. Copies run in the order
// in which the tensors are needed.
func (p *Problem) Lift(trips []Trip, order, want []int32, usage []int64) {
	last := int32(0)
	for _, i := range order {
		x := &trips[i]
		x.Back = x.Need
		if x.Bytes == 0 {
			continue
		}
		size := p.Graph.Tensors[x.Tensor].Bytes
		first := min(max(want[i], x.Free+1, last), x.Need)
		for x.Back > first && usage[x.Back-1]+size <= p.Limits.Device {
			x.Back--
			usage[x.Back] += size
		}
		last = x.Back
	}
}
