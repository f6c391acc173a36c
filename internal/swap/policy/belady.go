package policy

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planBelady sends away what is used furthest in the future (Belady, IBM Systems Journal 1966): for tensors of one size, no policy fetches
// fewer.
func planBelady(p *problem) ([]swap.Action, error) {
	return p.Early(draft.Ranking{Of: func(q *draft.Pager, i, _ int32) float64 { return float64(q.Pages[i].Uses[q.State[i].Next]) }})
}
