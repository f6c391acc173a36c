package papers

import (
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// All copies every tensor that has a gap between the passes to the host as soon as it is written, and frees it when its copy ends,
// or else at the end of the forward pass. What a layer of the backward pass needs is copied back while the one before it runs. The limits
// are ignored.
func All(p *draft.Problem) ([]swap.Action, error) {
	gaps := p.MainGaps()
	trips := make([]draft.Trip, 0, len(gaps))
	c := draft.Clock{Link: p.Limits.Link}
	waiting := make([]time.Duration, 0, len(gaps)) // ends of the copies of trips
	given := 0
	next := 0
	for op := int32(0); op < min(p.Backward+1, p.Ops()); op++ {
		for ; next < len(gaps) && p.Graph.Tensors[gaps[next].Tensor].Made < op; next++ {
			x := gaps[next]
			bytes := p.Graph.Tensors[x.Tensor].Bytes
			trips = append(trips, draft.Trip{Tensor: x.Tensor, Bytes: bytes, Out: op, Free: x.After + 1, Need: x.Before})
			waiting = append(waiting, c.Copy(bytes))
		}
		for ; given < len(trips) && (waiting[given] <= c.Now || op == p.Backward); given++ {
			c.Now = max(c.Now, waiting[given])
			trips[given].Free = max(trips[given].Free, op)
		}
		c.Now += p.Graph.Ops[op].Duration
	}
	trips = draft.TakeAway(trips, func(x *draft.Trip) bool { return x.Free >= x.Need })
	stageAhead(p, trips)
	return p.Compile(trips, p.Remake.Dead), nil
}

// stageAhead lets the copies back for a stage of the backward pass begin with the stage before it. A stage is a layer; operators of no layer
// form one that ends at the next need.
func stageAhead(p *draft.Problem, trips []draft.Trip) {
	needed := make([]bool, p.Ops())
	for i := range trips {
		needed[trips[i].Need] = true
	}
	before := make([]int32, p.Ops()) // where the stage before each operator's begins
	stage, last := p.Backward, p.Backward
	if p.Backward < p.Ops() {
		before[p.Backward] = p.Backward
	}
	for op := p.Backward + 1; op < p.Ops(); op++ {
		o := &p.Graph.Ops[op]
		if o.Layer != p.Graph.Ops[op-1].Layer || o.Layer < 0 && needed[op] {
			last, stage = stage, op
		}
		before[op] = last
	}
	for i := range trips {
		x := &trips[i]
		x.Back = max(x.Free+1, before[x.Need])
	}
}
