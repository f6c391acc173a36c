package policy

import (
	"math"
	"time"
)

// hoist sets when the copies of trips to the device begin: as late as lets each end in time, were there nothing else to wait for, and as
// memory allows. Usage is the bytes in use at each operator if all trips end when the tensor is needed; hoist adds to it. Begin is when each
// operator begins.
func (p *problem) hoist(trips []trip, usage []int64, begin []time.Duration) {
	order := p.byNeed(trips)
	want := zeroed(p.work.want, len(trips))
	p.work.want = want
	lane := time.Duration(math.MaxInt64)
	for i := len(order) - 1; i >= 0; i-- {
		x := &trips[order[i]]
		if x.bytes > 0 {
			lane = min(lane, begin[x.need]) - p.limits.Link.InTime(x.bytes)
			want[order[i]] = lastBy(begin, lane)
		}
	}
	p.lift(trips, order, want, usage)
}

// lastBy returns the last operator that begins by a time, or the first operator of all.
func lastBy(begin []time.Duration, at time.Duration) int32 { return max(0, firstAt(begin, at+1)-1) }

// lift lets the copies of trips to the device begin at the operators that are wanted, or after those as soon as there is memory. They are
// made in the order in which the tensors are needed.
func (p *problem) lift(trips []trip, order, want []int32, usage []int64) {
	last := int32(0)
	for _, i := range order {
		x := &trips[i]
		x.back = x.need
		if x.bytes == 0 {
			continue
		}
		size := p.graph.Tensors[x.tensor].Bytes
		first := min(max(want[i], x.free+1, last), x.need)
		for x.back > first && usage[x.back-1]+size <= p.limits.Device {
			x.back--
			usage[x.back] += size
		}
		last = x.back
	}
}
