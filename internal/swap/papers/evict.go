package papers

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// FIFO sends away what has been on the device for longest.
func FIFO(p *draft.Problem) ([]swap.Action, error) {
	return p.Early(draft.Ranking{Of: func(q *draft.Pager, i, _ int32) float64 { return -float64(q.State[i].Arrived) }})
}

// LRU sends away what was used longest ago.
func LRU(p *draft.Problem) ([]swap.Action, error) {
	return p.Early(draft.Ranking{Of: func(q *draft.Pager, i, _ int32) float64 { return -float64(q.State[i].Touched) }})
}

// Latency is Ravenstore's latency-aware policy, which goes by the time until a tensor is accessed next and by its size (section 1.1.3). The report
// does not say how the two are combined; here by their product.
func Latency(p *draft.Problem) ([]swap.Action, error) {
	return p.Early(draft.Ranking{Moves: true, Of: func(q *draft.Pager, i, op int32) float64 {
		next := q.Pages[i].Uses[q.State[i].Next]
		return float64(q.Begin[next]-q.Begin[op]) * float64(q.Size(i))
	}})
}
