package pairs

import (
	"cmp"
	"slices"
)

// wait queues an item whose bases have changed.
func (t *pairTree) wait(item int32) {
	if !t.queued[item] {
		t.queued[item] = true
		t.waiting = append(t.waiting, item)
	}
}

// decide sets the order of a pair.
func (t *pairTree) decide(k int32, state order) {
	t.trail = append(t.trail, change{stateField, k, int64(t.pairs[k].state)})
	t.pairs[k].state = state
	t.wait(t.pairs[k].a)
	t.wait(t.pairs[k].b)
}

// raise raises the least base of an item. It returns false on a contradiction.
func (t *pairTree) raise(item int32, base int64) bool {
	if base <= t.low[item] {
		return true
	}
	base = t.m.Items[item].AtLeast(base)
	t.trail = append(t.trail, change{lowField, item, t.low[item]})
	t.low[item] = base
	t.wait(item)
	return base <= t.high[item]
}

// lower lowers the greatest base of an item. It returns false on a contradiction.
func (t *pairTree) lower(item int32, base int64) bool {
	if base >= t.high[item] {
		return true
	}
	base = t.m.Items[item].AtMost(base)
	t.trail = append(t.trail, change{highField, item, t.high[item]})
	t.high[item] = base
	t.wait(item)
	return base >= t.low[item]
}

// undo reverts the changes since the trail had the length mark.
func (t *pairTree) undo(mark int) {
	for k := len(t.trail) - 1; k >= mark; k-- {
		switch c := t.trail[k]; c.what {
		case lowField:
			t.low[c.index] = c.value
		case highField:
			t.high[c.index] = c.value
		case stateField:
			t.pairs[c.index].state = order(c.value)
		}
	}
	t.trail = t.trail[:mark]
	for _, i := range t.waiting {
		t.queued[i] = false
	}
	t.waiting = t.waiting[:0]
}

// settle draws all conclusions from the decisions. It returns false when there is a contradiction, or no work is left.
func (t *pairTree) settle() bool {
	for i := range t.high {
		if !t.lower(int32(i), t.limit-t.m.Items[i].Top) || t.low[i] > t.high[i] {
			return false
		}
	}
	return t.spread() && t.fits()
}

// longestSpread is the number of changes after which the search stops: items of several rectangles may push each other up bit by bit.
const longestSpread = 1 << 22

// spread propagates changes of bases along the pairs.
func (t *pairTree) spread() bool {
	for next := 0; next < len(t.waiting); next++ {
		item := t.waiting[next]
		t.queued[item] = false
		t.stopped = t.stopped || next > longestSpread
		if !t.spend(1 + len(t.of[item])) {
			return false
		}
		for _, k := range t.of[item] {
			if !t.conclude(k) {
				return false
			}
		}
	}
	t.waiting = t.waiting[:0]
	return true
}

// conclude draws the conclusions from one pair.
func (t *pairTree) conclude(k int32) bool {
	p := &t.pairs[k]
	if p.state == open {
		up, down := t.room(p, bAbove) >= 0, t.room(p, aAbove) >= 0
		switch {
		case !up && !down:
			return false
		case !down:
			t.decide(k, bAbove)
		case !up:
			t.decide(k, aAbove)
		}
	}
	switch p.state {
	case bAbove:
		return t.raise(p.b, t.low[p.a]+p.above) && t.lower(p.a, t.high[p.b]-p.above)
	case aAbove:
		return t.raise(p.a, t.low[p.b]+p.below) && t.lower(p.b, t.high[p.a]-p.below)
	}
	return true
}

// task is the addresses that a rectangle may occupy, for a test of its section.
type task struct {
	from, to int64 // units: its least offset and its greatest end
	size     int64 // units
}

// fits reports whether each section may have enough addresses: the rectangles that must lie between two addresses must fit
// between them.
func (t *pairTree) fits() bool {
	for _, clique := range t.cliques {
		t.tasks = t.tasks[:0]
		for _, i := range clique {
			r := &t.m.Rects[i]
			t.tasks = append(t.tasks, task{t.low[r.Item] + r.Low, t.high[r.Item] + r.Low + r.Size, r.Size})
		}
		slices.SortFunc(t.tasks, func(a, b task) int { return cmp.Compare(a.to, b.to) })
		if !t.spend(len(clique) * (8 + len(clique)/4)) {
			return false
		}
		for _, first := range t.tasks {
			sum := first.from
			for _, other := range t.tasks {
				if other.from >= first.from {
					if sum += other.size; sum > other.to {
						return false
					}
				}
			}
		}
	}
	return true
}
