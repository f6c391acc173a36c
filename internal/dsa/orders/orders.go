package orders

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/heuristic"
	"gm/internal/dsa/rigid"
	"gm/internal/dsa/sections"
)

// Start is an order, and the layout that it gives.
type Start struct {
	Order []int32
	Bases []int64 // nil when the pass ended early
	Peak  int64   // units
	work  int64   // visited blocks
}

// The orders that are tried: first by the offsets at which a skyline places the rectangles, each for itself, then by properties of
// the items.
var (
	skylineKeys = []sections.Key{"A", "S", "W", "V", "TWA", "TAW", "Z", "TZ"}
	itemKeys    = []sections.Key{"TAW", "ZW", "A", "WZ", "S", "TZW", "TWA", ""}
)

const (
	// startBatch is the number of orders that are tried at the same time. It does not depend on the number of workers, because
	// all layouts of a batch have to be better than the best when the batch begins.
	startBatch = 8
	startWork  = 1 << 32 // blocks that may be visited: when a pass takes long, fewer orders are tried
)

// Try places the items in several orders and returns those that were worth finishing, the best first.
func (s *Search) Try() []Start { return s.TryFrom(0) }

// TryFrom tries the orders from a turn on.
func (s *Search) TryFrom(first int) []Start {
	turns := len(skylineKeys) + len(itemKeys)
	items := bounds(s.Model)
	var done []Start
	count, left, cost := 1, int64(startWork), int64(1)
	for from := first; count > 0 && !s.Ended(); {
		batch := make([]Start, count)
		s.Each(count, func(i int) { batch[i] = s.try(items, from+i) })
		for i, t := range batch {
			left -= t.work
			cost = max(cost, t.work)
			if t.Bases != nil {
				s.Offer(t.Bases, t.Peak, orderName(s.Model, from+i))
				done = append(done, t)
			}
		}
		from += count
		count = int(min(startBatch, int64(turns-from), left/cost))
	}
	slices.SortStableFunc(done, func(a, b Start) int { return cmp.Compare(a.Peak, b.Peak) })
	return done
}

// orderName returns the name of the method of a turn.
func orderName(m *rigid.Model, turn int) string {
	switch {
	case bestFitFirst(m, turn):
		return "order-best-fit"
	case turn < len(skylineKeys):
		return "order-skyline-" + string(skylineKeys[turn])
	}
	if by := itemKeys[turn-len(skylineKeys)]; by != "" {
		return "order-" + string(by)
	}
	return "order-birth"
}

// try runs one turn. It ends early when the peak is far above the best. When there is no layout and no time, it finishes fast.
func (s *Search) try(items *sections.Instance, turn int) Start {
	var order []int32
	stop := func(int64) bool { return s.stopped() }
	switch {
	case bestFitFirst(s.Model, turn):
		order = byLayout(s.Model, heuristic.BestFit{}, stop)
	case turn < len(skylineKeys):
		order = byLayout(s.Model, heuristic.SkylineBy(skylineKeys[turn]), stop)
	default:
		order = byKey(s.Model, items, itemKeys[turn-len(skylineKeys)])
	}
	c := rigid.NewPass(s.Model, order)
	worst := s.Peak + s.Peak/4
	placed := c.Run(s.Model, func(peak int64) bool { return s.Ctx.Err() != nil || s.Bases != nil && peak > worst })
	switch {
	case placed == len(order):
	case s.Bases != nil || s.stopped():
		return Start{work: c.Placed.Visited}
	default:
		c.Finish(s.Model, placed)
	}
	return Start{order, c.Base, c.Peak, c.Placed.Visited}
}

// bounds returns the items as buffers that live from their first section to their last, for ranking.
func bounds(m *rigid.Model) *sections.Instance {
	n := len(m.Items)
	in := &sections.Instance{Lo: make([]int32, n), Hi: make([]int32, n), Size: make([]int64, n)}
	in.Features = sections.Features{
		Life: make([]float64, n), Sections: make([]float64, n), Size: make([]float64, n), Load: make([]float64, n),
	}
	for i := range in.Lo {
		in.Lo[i] = int32(m.Sections())
	}
	for k, i := range m.Flat.ID {
		item := m.Rects[i].Item
		in.Lo[item], in.Hi[item] = min(in.Lo[item], m.Flat.Lo[k]), max(in.Hi[item], m.Flat.Hi[k])
		f, of := &in.Features, &m.Flat.Features
		f.Life[item] += of.Life[k]
		f.Sections[item] += of.Sections[k]
		f.Size[item] = float64(m.Items[item].Top)
		f.Load[item] = max(f.Load[item], of.Load[k])
	}
	return in
}

// byKey returns the items that are not fixed, the greatest by a key first.
func byKey(m *rigid.Model, items *sections.Instance, by sections.Key) []int32 {
	var r sections.Ranking
	rank := r.ByKey(items, by)
	return sorted(m, func(a, b int32) int { return cmp.Compare(rank[b], rank[a]) })
}

// bestFitFirst reports whether a turn uses best fit instead of a skyline, because the first turn has to be fast on any problem.
func bestFitFirst(m *rigid.Model, turn int) bool {
	return turn == 0 && len(m.Rects) > heuristic.ManyBuffers
}

// byLayout returns the items that are not fixed, from the bottom up in a layout by a method that places each rectangle for itself.
func byLayout(m *rigid.Model, by heuristic.Method, stop sections.Stop) []int32 {
	var w heuristic.Workspace
	out := make([]int64, m.Flat.Len())
	by.Layout(m.Flat, &w, stop, out)
	low := make([]int64, len(m.Items))
	for i := range low {
		low[i] = -1
	}
	for k, i := range m.Flat.ID {
		r := &m.Rects[i]
		if base := max(0, out[k]-r.Low); low[r.Item] < 0 || base < low[r.Item] {
			low[r.Item] = base
		}
	}
	return sorted(m, func(a, b int32) int { return cmp.Compare(low[a], low[b]) })
}

// sorted returns the items that are not fixed in an order.
func sorted(m *rigid.Model, compare func(a, b int32) int) []int32 {
	order := make([]int32, 0, len(m.Items))
	for i := range m.Items {
		if m.Items[i].Fixed == dsa.Free {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, compare)
	return order
}

// ordersTime is the fraction of the remaining time that orders may take.
const ordersTime = 0.35

// TryItemKeys tries only the orders by properties of items, for a caller that has run the skylines. It takes part of the time if there is a
// deadline.
func (s *Search) TryItemKeys() []Start {
	deadline, ok := s.Ctx.Deadline()
	if !ok {
		return s.TryFrom(len(skylineKeys))
	}
	all := s.Ctx
	ctx, cancel := context.WithTimeout(all, time.Duration(ordersTime*float64(time.Until(deadline))))
	defer cancel()
	s.Ctx = ctx
	starts := s.TryFrom(len(skylineKeys))
	s.Ctx = all
	return starts
}
