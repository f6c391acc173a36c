package draft

import (
	"slices"

	"gm/internal/swap"
)

// Early pages on demand, with copies that begin early each way.
func (p *Problem) Early(rank Ranking) ([]swap.Action, error) {
	q, err := p.planPages(rank)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(q.Trips, func(a, b Trip) int { return int(p.Made(&a) - p.Made(&b)) })
	p.Queue(q.Trips)
	p.Hoist(q.Trips, q.Usage, p.Begin)
	return p.Compile(q.Trips, p.Remake.Dead), nil
}
