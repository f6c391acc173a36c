package choose

import (
	"container/heap"
	"math"

	"gm/internal/swap/partition"
)

// change is one of a choice: a value is no more saved, or is from now on.
type change struct {
	value int32
	deep  bool    // what a value is recomputed from, and was not needed so far, is saved in its place
	worth float64 // at most
}

// near is the share of what the next best change may be worth at which a change counts as the best.
const near = 0.8

// prune costs a choice, and saves no more what the backward pass does not need.
func (s *search) prune(c *choice) {
	c.cost = s.cost(c.saved)
	for _, v := range s.free {
		c.saved[v] = c.saved[v] && s.machine.Needs(v)
	}
}

// shrink makes the changes of single values until the choice keeps to the limit, or none brings it nearer. It takes first what saves the
// most bytes for its time. A value that is locked stays.
func (s *search) shrink(c *choice, locked int32) {
	for c.cost.Over > 0 && s.seen < most {
		if !s.changeBest(c, locked, true) && !s.changeBest(c, locked, false) {
			return
		}
	}
}

// changeBest changes values that are saved, or those that are not, the best first, and reports whether there were any.
func (s *search) changeBest(c *choice, locked int32, saved bool) (changed bool) {
	q := s.changes(c, locked, saved)
	heap.Init(&q)
	for len(q) > 0 && c.cost.Over > 0 && s.seen < most {
		// No change is worth more than was thought: the best is tried, and made if it still is the best then.
		x := q[0]
		cost := s.try(c, x)
		worth := worth(c.cost, cost)
		switch {
		case worth <= 0:
			heap.Pop(&q)
		case worth < near*q.second():
			q[0].worth = worth
			heap.Fix(&q, 0)
		default:
			heap.Pop(&q)
			s.apply(c, x)
			s.prune(c)
			changed = true
		}
	}
	return changed
}

// changes lists what can be changed, with what that is worth at most.
func (s *search) changes(c *choice, locked int32, saved bool) queue {
	q := make(queue, 0, len(s.free))
	for _, v := range s.free {
		if c.saved[v] != saved || v == locked {
			continue
		}
		x := change{value: v, worth: math.MaxFloat64}
		if saved {
			x.worth = float64(s.r.Values[v].Bytes) * float64(c.cost.Places) / float64(max(1, s.ns(v)))
			if s.isDeep(c, v) {
				q = append(q, change{v, true, x.worth})
			}
		}
		q = append(q, x)
	}
	return q
}

// isDeep reports whether a value that is saved is recomputed from others that are not.
func (s *search) isDeep(c *choice, v int32) bool {
	for _, from := range s.r.Ops[s.machine.Maker(v)].Reads {
		if !c.saved[from] && !s.r.Values[from].Barred {
			return true
		}
	}
	return false
}

// try returns what a choice costs with a change.
func (s *search) try(c *choice, x change) partition.Cost {
	undo := s.apply(c, x)
	cost := s.cost(c.saved)
	undo()
	return cost
}

// apply makes a change, and returns a function that takes it back.
func (s *search) apply(c *choice, x change) (undo func()) {
	var saved []int32
	c.saved[x.value] = !c.saved[x.value]
	if x.deep {
		for _, from := range s.r.Ops[s.machine.Maker(x.value)].Reads {
			if !c.saved[from] && !s.r.Values[from].Barred {
				c.saved[from] = true
				saved = append(saved, from)
			}
		}
	}
	return func() {
		c.saved[x.value] = !c.saved[x.value]
		for _, from := range saved {
			c.saved[from] = false
		}
	}
}

// worth is by how much a choice comes nearer to the limit for the time that it takes more.
func worth(now, then partition.Cost) float64 {
	if then.Over >= now.Over {
		return 0
	}
	if then.NS <= now.NS {
		return math.MaxFloat64
	}
	return float64(now.Over-then.Over) / float64(then.NS-now.NS)
}

// fill saves single values as long as that takes less time and keeps to the limit, or exceeds it no more.
func (s *search) fill(c *choice) {
	for changed := true; changed && s.seen < most; {
		changed = false
		var q queue
		for _, v := range s.free {
			if !c.saved[v] {
				q = append(q, change{value: v, worth: float64(s.ns(v)) / float64(s.r.Values[v].Bytes+1)})
			}
		}
		heap.Init(&q)
		for len(q) > 0 && s.seen < most {
			x := heap.Pop(&q).(change)
			if cost := s.try(c, x); cost.Over <= c.cost.Over && cost.NS < c.cost.NS {
				s.apply(c, x)
				s.prune(c)
				changed = true
			}
		}
	}
}

// queue is a heap of changes, that which is worth the most first.
type queue []change

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].worth > q[j].worth }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(change)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// second returns what the next best is worth at most.
func (q queue) second() float64 {
	w := math.Inf(-1)
	for _, x := range q[min(1, len(q)):min(3, len(q))] {
		w = max(w, x.worth)
	}
	return w
}
