package policy

import (
	"slices"

	"gm/internal/swap"
)

// planFIFO sends away what has been on the device for longest.
func planFIFO(p *problem) ([]swap.Action, error) {
	return p.planEarly(ranking{of: func(q *pager, i, _ int32) float64 { return -float64(q.state[i].arrived) }})
}

// planLRU sends away what was used longest ago.
func planLRU(p *problem) ([]swap.Action, error) {
	return p.planEarly(ranking{of: func(q *pager, i, _ int32) float64 { return -float64(q.state[i].touched) }})
}

// planLatency is Ravenstore's latency-aware policy: the time until a tensor is accessed next is known, and the sizes of tensors count
// (section 1.1.3). The report does not say how the two go together; here it is their product.
func planLatency(p *problem) ([]swap.Action, error) {
	return p.planEarly(ranking{moves: true, of: func(q *pager, i, op int32) float64 {
		next := q.pages[i].uses[q.state[i].next]
		return float64(q.begin[next]-q.begin[op]) * float64(q.size(i))
	}})
}

// planBelady sends away what is used furthest in the future (Belady, IBM Systems Journal 1966): of tensors of one size, no policy has to
// fetch fewer.
func planBelady(p *problem) ([]swap.Action, error) {
	return p.planEarly(ranking{of: func(q *pager, i, _ int32) float64 { return float64(q.pages[i].uses[q.state[i].next]) }})
}

// planEarly pages on demand, with copies that begin early each way.
func (p *problem) planEarly(rank ranking) ([]swap.Action, error) {
	q, err := p.planPages(rank)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(q.trips, func(a, b trip) int { return int(p.made(&a) - p.made(&b)) })
	p.queue(q.trips)
	p.hoist(q.trips, q.usage, p.begin)
	return p.compile(q.trips, p.remake.dead), nil
}
