package remat

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/evict"
)

// online returns a schedule of a step that evicts as it goes: as DTR does, with memory that has no addresses. In very little memory it may have one
// where no state has: what is recomputed earlier than it is needed stays.
func online(p *draft.Problem) ([]swap.Action, error) { return evict.Plan(p, counted{}) }

// counted is memory of which bytes are counted.
type counted struct{}

// Place implements [evict.Memory].
func (counted) Place(r *evict.Run, _ int32, bytes int64) int64 {
	for r.Lacks(bytes) > 0 {
		victim, least := evict.None, 0.0
		for t := range int32(len(r.Graph.Tensors)) {
			if !r.Evictable(t) {
				continue
			}
			if h := float64(r.Costs.Of(t)) / (float64(r.Graph.Tensors[t].Bytes) * float64(r.Stale(t))); victim == evict.None || h < least {
				victim, least = t, h
			}
		}
		if victim == evict.None {
			return r.Lacks(bytes)
		}
		r.Evict(victim)
	}
	return 0
}

// Drop implements [evict.Memory].
func (counted) Drop(int32) {}
