package evict

import (
	"math"

	"gm/internal/swap/draft"
)

// Until returns, for each tensor, the last operator before which it can be recomputed whatever else is not there: what cannot be recomputed
// that it is computed from, by others or not, still is in its last use then. It is -1 for a tensor that cannot be recomputed.
func Until(p *draft.Problem) []int32 {
	g, remake := p.Graph, p.Remake
	all := make([]int32, len(g.Tensors))
	for _, t := range remake.Ordered() {
		all[t] = -1
		if !remake.Able(t) {
			continue
		}
		all[t] = math.MaxInt32
		for _, from := range g.Tensors[t].From {
			least := all[from]
			if !remake.Able(from) {
				least = g.Tensors[from].Last()
			}
			all[t] = min(all[t], least)
		}
	}
	return all
}
