package papers

import (
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// Checkpoint keeps the input of each layer and recomputes what else the layer saved when its backward pass begins, as programs have
// torch.utils.checkpoint do it. What cannot be recomputed stays. The limits are ignored.
func Checkpoint(p *draft.Problem) ([]swap.Action, error) {
	gaps := p.MainGaps()
	slices.SortFunc(gaps, func(a, b draft.Gap) int { return int(p.Remake.Rank[a.Tensor] - p.Remake.Rank[b.Tensor]) })
	layers := layersOf(p)
	dropped := map[int32]int32{} // the layers of tensors that are recomputed
	var trips []draft.Trip
	var r draft.Recipe
	for _, x := range gaps {
		t := &p.Graph.Tensors[x.Tensor]
		l, known := layers[t.Layer]
		if !known || t.Role == swap.LayerInput {
			continue
		}
		need := min(x.Before, l.backward)
		p.Remake.Begin(&r)
		able := p.Remake.Add(&r, x.Tensor, need, p.Remake.Dead)
		elsewhere := slices.ContainsFunc(r.Needs, func(from int32) bool {
			layer, ok := dropped[from]
			return ok && layer != t.Layer
		})
		if !able || elsewhere {
			continue
		}
		dropped[x.Tensor] = t.Layer
		trips = append(trips, draft.Trip{Tensor: x.Tensor, After: x.After, Free: max(l.forwardEnd, x.After+1), Back: need, Need: need})
	}
	trips = p.Advance(trips)
	slices.SortStableFunc(trips, func(a, b draft.Trip) int { return int(p.Made(&a) - p.Made(&b)) })
	return p.Compile(trips, p.Remake.Dead), nil
}

// passes are where a layer's forward pass ends, the operator behind it, and where its backward pass begins.
type passes struct{ forwardEnd, backward int32 }

// layersOf returns the layers that run forward. Those that do not run backward begin to behind the last operator.
func layersOf(p *draft.Problem) map[int32]passes {
	layers := map[int32]passes{}
	for op := range p.Backward {
		if o := &p.Graph.Ops[op]; o.Layer >= 0 {
			layers[o.Layer] = passes{op + 1, p.Ops()}
		}
	}
	for op := p.Ops() - 1; op >= p.Backward; op-- {
		if l, ok := layers[p.Graph.Ops[op].Layer]; ok {
			l.backward = op
			layers[p.Graph.Ops[op].Layer] = l
		}
	}
	return layers
}
