package dsa

import (
	"cmp"
	"slices"
)

// start is an order to begin with, and what comes of it.
type start struct {
	order []int32
	bases []int64 // nil when the pass was given up
	peak  int64   // units
	work  int64   // blocks that were looked at
}

// The orders that are tried: by where the skyline puts the rectangles when each is by itself, then by the properties of
// the items.
var (
	skylineKeys = []key{"A", "S", "W", "V", "TWA", "TAW", "Z", "TZ"}
	itemKeys    = []key{"TAW", "ZW", "A", "WZ", "S", "TZW", "TWA", ""}
)

const (
	// startBatch is the number of orders that are tried at one time. It does not depend on the number of workers, since
	// what the layouts of a batch have to be better than is known when it begins.
	startBatch = 8
	startWork  = 1 << 32 // blocks that may be looked at: when one pass takes long, fewer orders are tried
)

// tryOrders places the items in several orders and returns those that were worth finishing, the best first.
func (s *search) tryOrders() []start { return s.tryOrdersFrom(0) }

// tryOrdersFrom tries the orders of a turn and those behind it.
func (s *search) tryOrdersFrom(first int) []start {
	turns := len(skylineKeys) + len(itemKeys)
	bounds := s.m.bounds()
	var done []start
	count, left, cost := 1, int64(startWork), int64(1)
	for from := first; count > 0 && !s.ended(); {
		batch := make([]start, count)
		s.each(count, func(i int) { batch[i] = s.try(bounds, from+i) })
		for i, t := range batch {
			left -= t.work
			cost = max(cost, t.work)
			if t.bases != nil {
				s.offer(t.bases, t.peak, s.m.orderName(from+i))
				done = append(done, t)
			}
		}
		from += count
		count = int(min(startBatch, int64(turns-from), left/cost))
	}
	slices.SortStableFunc(done, func(a, b start) int { return cmp.Compare(a.peak, b.peak) })
	return done
}

// orderName returns what the layouts of a turn go by.
func (m *model) orderName(turn int) string {
	switch {
	case m.hasty(turn):
		return "order-best-fit"
	case turn < len(skylineKeys):
		return "order-skyline-" + string(skylineKeys[turn])
	}
	if by := itemKeys[turn-len(skylineKeys)]; by != "" {
		return "order-" + string(by)
	}
	return "order-birth"
}

// try has one turn. It gives up when the peak is far above the best, and takes what is fast when there is none and no time.
func (s *search) try(bounds *instance, turn int) start {
	var order []int32
	stop := func(int64) bool { return s.stopped() }
	switch {
	case s.m.hasty(turn):
		order = s.m.byLayout(onlineBestFit{}, stop)
	case turn < len(skylineKeys):
		order = s.m.byLayout(skylineBy{skylineKeys[turn]}, stop)
	default:
		order = s.m.byKey(bounds, itemKeys[turn-len(skylineKeys)])
	}
	c := newPass(s.m, order)
	worst := s.peak + s.peak/4
	placed := c.run(s.m, func(peak int64) bool { return s.ctx.Err() != nil || s.bases != nil && peak > worst })
	switch {
	case placed == len(order):
	case s.bases != nil || s.stopped():
		return start{work: c.placed.looked}
	default:
		c.finish(s.m, placed)
	}
	return start{order, c.base, c.peak, c.placed.looked}
}

// bounds returns the items as buffers from their first section to their last, for the sake of ranking them.
func (m *model) bounds() *instance {
	n := len(m.items)
	in := &instance{lo: make([]int32, n), hi: make([]int32, n), size: make([]int64, n)}
	in.features = features{
		life: make([]float64, n), sections: make([]float64, n), size: make([]float64, n), load: make([]float64, n),
	}
	for i := range in.lo {
		in.lo[i] = int32(m.sections())
	}
	for k, i := range m.flat.id {
		item := m.rects[i].item
		in.lo[item], in.hi[item] = min(in.lo[item], m.flat.lo[k]), max(in.hi[item], m.flat.hi[k])
		f, of := &in.features, &m.flat.features
		f.life[item] += of.life[k]
		f.sections[item] += of.sections[k]
		f.size[item] = float64(m.items[item].top)
		f.load[item] = max(f.load[item], of.load[k])
	}
	return in
}

// byKey returns the items that are not fixed by a key, the greatest first.
func (m *model) byKey(bounds *instance, by key) []int32 {
	var r ranking
	rank := r.byKey(bounds, by)
	return m.sorted(func(a, b int32) int { return cmp.Compare(rank[b], rank[a]) })
}

// hasty says whether a turn has to be fast whatever the problem, and goes by best fit in place of a skyline.
func (m *model) hasty(turn int) bool { return turn == 0 && len(m.rects) > hasty }

// byLayout returns the items that are not fixed as a method that places each rectangle by itself has them from the bottom up.
func (m *model) byLayout(by method, stop stopFunc) []int32 {
	var w workspace
	out := make([]int64, m.flat.len())
	by.layout(m.flat, &w, stop, out)
	low := make([]int64, len(m.items))
	for i := range low {
		low[i] = -1
	}
	for k, i := range m.flat.id {
		r := &m.rects[i]
		if base := max(0, out[k]-r.low); low[r.item] < 0 || base < low[r.item] {
			low[r.item] = base
		}
	}
	return m.sorted(func(a, b int32) int { return cmp.Compare(low[a], low[b]) })
}

// sorted returns the items that are not fixed in an order.
func (m *model) sorted(compare func(a, b int32) int) []int32 {
	order := make([]int32, 0, len(m.items))
	for i := range m.items {
		if m.items[i].fixed == Free {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, compare)
	return order
}
