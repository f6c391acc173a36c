// Package pairs solves small problems exactly, by branch and bound on which of two rectangles is above the other.
//
//   - pairs.go: the solver and the search tree
//   - settle.go: the conclusions from what is decided
package pairs

import (
	"context"

	"gm/internal/dsa"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/rigid"
)

// Solver finds the least peak, or proves that a capacity is too small, for problems of any kind with few conflicts. Of two rectangles
// that live at the same time one is above the other, and branch and bound decides which, pair by pair.
type Solver struct{}

// Solve implements [dsa.Solver].
func (Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	s, err := orders.New(ctx, p, o)
	if err != nil {
		return dsa.Layout{}, err
	}
	s.Try()
	Improve(s, s.WorkLimit(Work))
	return s.Layout()
}

const (
	Work     = 1 << 29 // without a deadline: pairs that may be visited
	maxPairs = 1 << 20 // more are not worth the memory
)

// Improve looks for a lower layout and a higher bound, within the given work.
func Improve(s *orders.Search, work int64) {
	if s.Ended() || s.Bases == nil {
		return
	}
	limit := s.Peak - 1
	if s.Options.Capacity > 0 {
		limit = s.Goal()
	}
	t := newPairTree(s.Model, limit)
	if t == nil {
		return
	}
	t.work, t.ctx = work, s.Ctx
	s.Prove(t.rootBound(s.Bound))
	t.goal = s.Goal()
	t.found = func(bases []int64, peak int64) { s.Offer(bases, peak, "pairs") }
	if s.Refuted() {
		return
	}
	if t.root() {
		t.branch()
	}
	if !t.stopped {
		s.Prove(t.limit + 1)
	}
}

// pair is two rectangles of different items that live at the same time.
type pair struct {
	a, b  int32 // items
	above int64 // units: if the rectangle of b is above, the least distance of its base from that of a
	below int64 // units: the same if the rectangle of a is above
	state order
}

// order is which of two rectangles is above.
type order int8

const (
	open order = iota
	bAbove
	aAbove
)

// pairTree is the search. For each item it keeps the least and the greatest base that the decisions and the limit on the peak allow.
// When no open pair overlaps with all items at their least base, those bases are a layout.
type pairTree struct {
	m         *rigid.Model
	limit     int64 // units
	low, high []int64
	pairs     []pair
	of        [][]int32 // the pairs of each item
	cliques   [][]int32 // the rectangles that live in each section
	trail     []change

	waiting []int32 // the items whose least or greatest base has changed
	queued  []bool
	tasks   []task

	work    int64 // pairs that may still be visited
	look    int64 // the same until the next check of the time
	ctx     context.Context
	stopped bool  // the search ended early
	goal    int64 // units: a layout of that peak ends the search
	found   func(bases []int64, peak int64)
}

// change is a value to be restored.
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
func newPairTree(m *rigid.Model, limit int64) *pairTree {
	n := len(m.Items)
	t := &pairTree{m: m, limit: limit, low: make([]int64, n), high: make([]int64, n), of: make([][]int32, n), queued: make([]bool, n)}
	t.cliques = make([][]int32, m.Sections())
	flat := m.Flat
	for k, i := range flat.ID {
		for s := flat.Lo[k]; s < flat.Hi[k]; s++ {
			t.cliques[s] = append(t.cliques[s], i)
		}
		for l := k + 1; l < flat.Len() && flat.Lo[l] < flat.Hi[k]; l++ {
			if t.add(i, flat.ID[l]); len(t.pairs) > maxPairs {
				return nil
			}
		}
	}
	for i := range m.Items {
		it := &m.Items[i]
		t.low[i], t.high[i] = it.Floor(), it.AtMost(limit-it.Top)
		if it.Fixed != dsa.Free {
			t.high[i] = min(t.high[i], it.Fixed)
		}
	}
	return t
}

// add adds the pair of two rectangles, unless their order is fixed. Of two interchangeable items, the first is below.
func (t *pairTree) add(i, j int32) {
	m := t.m
	u, v := &m.Rects[i], &m.Rects[j]
	x, y := &m.Items[u.Item], &m.Items[v.Item]
	if u.Item == v.Item || x.Fixed != dsa.Free && y.Fixed != dsa.Free {
		return
	}
	if u.Item > v.Item {
		u, v, x, y, i, j = v, u, y, x, j, i
	}
	p := pair{a: u.Item, b: v.Item, above: u.Low + u.Size - v.Low, below: v.Low + v.Size - u.Low}
	if i-x.First == j-y.First && m.Alike(x, y) {
		p.state = bAbove
	}
	t.of[p.a] = append(t.of[p.a], int32(len(t.pairs)))
	t.of[p.b] = append(t.of[p.b], int32(len(t.pairs)))
	t.pairs = append(t.pairs, p)
}

// rootBound returns the greatest bound that can be proven without a decision, at least the given one.
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

// spend counts visited pairs. It returns false when the search has to stop.
func (t *pairTree) spend(pairs int) bool {
	t.work -= int64(pairs)
	if t.look -= int64(pairs); t.look < 0 {
		t.look = lookEvery
		t.stopped = t.stopped || t.work < 0 || t.ctx.Err() != nil
	}
	return !t.stopped
}

// lookEvery is how many pairs are visited between two checks of the time.
const lookEvery = 1 << 14

// keep reports the layout that has all items at their least base. From then on only a lower peak counts.
func (t *pairTree) keep() {
	peak := int64(0)
	for i, low := range t.low {
		peak = max(peak, low+t.m.Items[i].Top)
	}
	t.found(t.low, peak)
	t.limit = peak - 1
	t.stopped = t.stopped || peak <= t.goal
}

// choose returns the open pair that overlaps and has the least room, or -1.
func (t *pairTree) choose() int32 {
	best, least := int32(-1), int64(0)
	for k := range t.pairs {
		p := &t.pairs[k]
		if p.state != open || t.low[p.b] >= t.low[p.a]+p.above || t.low[p.a] >= t.low[p.b]+p.below {
			continue
		}
		if room := t.room(p, bAbove) + t.room(p, aAbove); best < 0 || room < least {
			best, least = int32(k), room
		}
	}
	t.spend(len(t.pairs))
	return best
}

// room returns how far the upper of two rectangles could move with a given order. It is negative when the order is impossible.
func (t *pairTree) room(p *pair, state order) int64 {
	if state == bAbove {
		return t.high[p.b] - t.low[p.a] - p.above
	}
	return t.high[p.a] - t.low[p.b] - p.below
}
