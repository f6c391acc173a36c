package policy

import (
	"time"

	"gm/internal/swap"
)

// clock is the time of the compute stream and of the lane to the host while a schedule is made for the forward pass.
type clock struct {
	link swap.Copier
	now  time.Duration
	lane time.Duration // end of the copies
}

// copy begins a copy to the host and returns its end.
func (c *clock) copy(bytes int64) time.Duration {
	c.lane = max(c.lane, c.now) + c.link.OutTime(bytes)
	return c.lane
}

// planAll copies every tensor that has a gap between the passes to the host as soon as it is written, and gives it back when its copy ends,
// or else at the end of the forward pass. What a layer of the backward pass needs is copied back while the one before it runs. Neither
// limit makes a difference.
func planAll(p *problem) ([]swap.Action, error) {
	gaps := p.mainGaps()
	trips := make([]trip, 0, len(gaps))
	c := clock{link: p.limits.Link}
	waiting := make([]time.Duration, 0, len(gaps)) // ends of the copies of trips
	given := 0
	next := 0
	for op := int32(0); op < min(p.backward+1, p.ops()); op++ {
		for ; next < len(gaps) && p.graph.Tensors[gaps[next].tensor].Made < op; next++ {
			x := gaps[next]
			bytes := p.graph.Tensors[x.tensor].Bytes
			trips = append(trips, trip{tensor: x.tensor, bytes: bytes, out: op, free: x.after + 1, need: x.before})
			waiting = append(waiting, c.copy(bytes))
		}
		for ; given < len(trips) && (waiting[given] <= c.now || op == p.backward); given++ {
			c.now = max(c.now, waiting[given])
			trips[given].free = max(trips[given].free, op)
		}
		c.now += p.graph.Ops[op].Duration
	}
	trips = takeAway(trips, func(x *trip) bool { return x.free >= x.need })
	p.stageAhead(trips)
	return p.compile(trips, p.remake.dead), nil
}

// takeAway removes trips.
func takeAway(trips []trip, pointless func(*trip) bool) []trip {
	kept := trips[:0]
	for i := range trips {
		if !pointless(&trips[i]) {
			kept = append(kept, trips[i])
		}
	}
	return kept
}

// stageAhead lets the copies back of what a stage of the backward pass needs begin with the stage before it. A stage is a layer; operators
// of no layer make one up to the next need.
func (p *problem) stageAhead(trips []trip) {
	needed := make([]bool, p.ops())
	for i := range trips {
		needed[trips[i].need] = true
	}
	before := make([]int32, p.ops()) // where the stage before each operator's begins
	stage, last := p.backward, p.backward
	if p.backward < p.ops() {
		before[p.backward] = p.backward
	}
	for op := p.backward + 1; op < p.ops(); op++ {
		o := &p.graph.Ops[op]
		if o.Layer != p.graph.Ops[op-1].Layer || o.Layer < 0 && needed[op] {
			last, stage = stage, op
		}
		before[op] = last
	}
	for i := range trips {
		x := &trips[i]
		x.back = max(x.free+1, before[x.need])
	}
}
