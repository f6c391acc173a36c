package dsa

import (
	"context"
	"slices"
)

// pairs finds the least peak, or proves that a capacity is too small, for problems with few conflicts: of two rectangles
// that live at one time one is above the other, and branch and bound decides which, pair by pair. It knows of nothing that
// makes a problem plain, so that it takes any.
type pairs struct{}

// Solve implements [Solver].
func (pairs) Solve(ctx context.Context, p *Problem, o Options) (Layout, error) {
	s, err := newSearch(ctx, p, o)
	if err != nil {
		return Layout{}, err
	}
	s.tryOrders()
	s.decidePairs(s.until(pairWork))
	return s.layout()
}

const (
	pairWork = 1 << 29 // without a deadline: pairs that may be looked at
	maxPairs = 1 << 20 // more are not worth the memory
)

// decidePairs looks for something better than what there is, and proves what it can with so much work.
func (s *search) decidePairs(work int64) {
	if s.ended() || s.bases == nil {
		return
	}
	limit := s.peak - 1
	if s.o.Capacity > 0 {
		limit = s.goal()
	}
	t := newPairTree(s.m, limit)
	if t == nil {
		return
	}
	t.work, t.ctx = work, s.ctx
	s.prove(t.rootBound(s.bound))
	t.goal = s.goal()
	t.found = func(bases []int64, peak int64) { s.offer(bases, peak, "pairs") }
	if s.refuted() {
		return
	}
	if t.root() {
		t.branch()
	}
	if !t.stopped {
		s.prove(t.limit + 1)
	}
}

// pair is of two rectangles of different items that live at one time.
type pair struct {
	a, b  int32 // items
	above int64 // units: where the base of b is at least, above that of a, when its rectangle is above
	below int64 // units: the same with a above b
	state order
}

// order says which of two rectangles is above.
type order int8

const (
	open order = iota
	bAbove
	aAbove
)

// pairTree is the search. Every item has the least and the greatest base that what is decided leaves it, when the peak
// may not be above the limit. When no pair that is open overlaps with all items at their least base, that is a layout.
type pairTree struct {
	m         *model
	limit     int64 // units
	low, high []int64
	pairs     []pair
	of        [][]int32 // the pairs of each item
	cliques   [][]int32 // the rectangles that live in each section
	trail     []change

	waiting []int32 // the items whose least or greatest base has changed
	queued  []bool
	tasks   []task

	work    int64 // pairs that may still be looked at
	look    int64 // the same until the next look at the time
	ctx     context.Context
	stopped bool  // before all was searched
	goal    int64 // units: a layout of that peak ends the search
	found   func(bases []int64, peak int64)
}

// change is what has to be put back.
type change struct {
	what  field
	index int32
	value int64
}

type field int8

const (
	lowField field = iota
	highField
	stateField
)

// newPairTree lists the pairs, or returns nil when there are too many.
func newPairTree(m *model, limit int64) *pairTree {
	n := len(m.items)
	t := &pairTree{m: m, limit: limit, low: make([]int64, n), high: make([]int64, n), of: make([][]int32, n), queued: make([]bool, n)}
	t.cliques = make([][]int32, m.sections())
	flat := m.flat
	for k, i := range flat.id {
		for s := flat.lo[k]; s < flat.hi[k]; s++ {
			t.cliques[s] = append(t.cliques[s], i)
		}
		for l := k + 1; l < flat.len() && flat.lo[l] < flat.hi[k]; l++ {
			if t.add(i, flat.id[l]); len(t.pairs) > maxPairs {
				return nil
			}
		}
	}
	for i := range m.items {
		it := &m.items[i]
		t.low[i], t.high[i] = it.floor(), it.atMost(limit-it.top)
		if it.fixed != Free {
			t.high[i] = min(t.high[i], it.fixed)
		}
	}
	return t
}

// add enters the pair of two rectangles, unless their order is given. Of items that are alike, the first is below.
func (t *pairTree) add(i, j int32) {
	m := t.m
	u, v := &m.rects[i], &m.rects[j]
	x, y := &m.items[u.item], &m.items[v.item]
	if u.item == v.item || x.fixed != Free && y.fixed != Free {
		return
	}
	if u.item > v.item {
		u, v, x, y, i, j = v, u, y, x, j, i
	}
	p := pair{a: u.item, b: v.item, above: u.low + u.size - v.low, below: v.low + v.size - u.low}
	if i-x.first == j-y.first && m.alike(x, y) {
		p.state = bAbove
	}
	t.of[p.a] = append(t.of[p.a], int32(len(t.pairs)))
	t.of[p.b] = append(t.of[p.b], int32(len(t.pairs)))
	t.pairs = append(t.pairs, p)
}

// alike says whether two items could change places in any layout.
func (m *model) alike(x, y *item) bool {
	return x.fixed == Free && y.fixed == Free && x.congruence == y.congruence &&
		slices.EqualFunc(m.rects[x.first:x.last], m.rects[y.first:y.last], func(u, v rect) bool {
			u.item = v.item
			return u == v
		})
}

// rootBound returns the greatest bound that is proven without any decision, and at least the given one.
func (t *pairTree) rootBound(bound int64) int64 {
	limit := t.limit
	for least := limit + 1; bound < least; { // a limit of least is not refuted
		t.limit = bound + (least-bound)/2
		if t.root() {
			least = t.limit
		} else {
			bound = t.limit + 1
		}
		t.undo(0)
	}
	t.limit = limit
	return bound
}

// root draws the conclusions from the limit alone. It returns false when the limit is refuted.
func (t *pairTree) root() bool {
	for i := range t.low {
		t.wait(int32(i))
	}
	return t.settle() || t.stopped
}

// branch searches all that the decisions so far leave.
func (t *pairTree) branch() {
	mark := len(t.trail)
	defer t.undo(mark)
	if !t.settle() {
		return
	}
	k := t.choose()
	if k < 0 {
		t.keep()
		return
	}
	p := &t.pairs[k]
	first, second := bAbove, aAbove
	if t.room(p, aAbove) > t.room(p, bAbove) {
		first, second = second, first
	}
	for _, state := range [2]order{first, second} {
		if t.stopped {
			return
		}
		mark := len(t.trail)
		t.decide(k, state)
		t.branch()
		t.undo(mark)
	}
}

// spend notes that so many pairs were looked at. It returns false when the search has to stop.
func (t *pairTree) spend(pairs int) bool {
	t.work -= int64(pairs)
	if t.look -= int64(pairs); t.look < 0 {
		t.look = lookEvery
		t.stopped = t.stopped || t.work < 0 || t.ctx.Err() != nil
	}
	return !t.stopped
}

// lookEvery is how many pairs are looked at between two looks at the time.
const lookEvery = 1 << 14

// keep reports the layout that has all items at their least base. From now on only a lower peak will do.
func (t *pairTree) keep() {
	peak := int64(0)
	for i, low := range t.low {
		peak = max(peak, low+t.m.items[i].top)
	}
	t.found(t.low, peak)
	t.limit = peak - 1
	t.stopped = t.stopped || peak <= t.goal
}

// choose returns the pair that overlaps and has the least room, or -1.
func (t *pairTree) choose() int32 {
	best, least := none, int64(0)
	for k := range t.pairs {
		p := &t.pairs[k]
		if p.state != open || t.low[p.b] >= t.low[p.a]+p.above || t.low[p.a] >= t.low[p.b]+p.below {
			continue
		}
		if room := t.room(p, bAbove) + t.room(p, aAbove); best == none || room < least {
			best, least = int32(k), room
		}
	}
	t.spend(len(t.pairs))
	return best
}

// room returns how far the upper of two rectangles could move when their order is given, negative when it cannot be.
func (t *pairTree) room(p *pair, state order) int64 {
	if state == bAbove {
		return t.high[p.b] - t.low[p.a] - p.above
	}
	return t.high[p.a] - t.low[p.b] - p.below
}
