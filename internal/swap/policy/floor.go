package policy

import (
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planFloor is DeepSpeed's offload_activation (its issue 8255): with everything copied to the host memory is at its floor; from there the
// largest tensors are kept as long as the budget allows, and each copy back is begun early enough to be hidden if memory allows.
//
// DeepSpeed compares the floor and a tensor's size with the budget. Here a tensor is kept if it fits at each operator.
func planFloor(p *problem) ([]swap.Action, error) {
	var all []away
	usage := append([]int64(nil), p.Plain...)
	for _, x := range p.MainGaps() {
		bytes := p.Graph.Tensors[x.Tensor].Bytes
		all = append(all, away{x, bytes})
		draft.Plus(usage, x.After+1, x.Before, -bytes)
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b away) int { return int(b.bytes - a.bytes) })
	kept := make([]bool, len(p.Graph.Tensors))
	for _, x := range order {
		if fits(usage, x.After+1, x.Before, x.bytes, p.Limits.Device) {
			kept[x.Tensor] = true
			draft.Plus(usage, x.After+1, x.Before, x.bytes)
		}
	}
	return p.realize(slices.DeleteFunc(all, func(x away) bool { return kept[x.Tensor] }))
}

// fits reports whether the operators from first to the one before end keep to a limit with these bytes added.
func fits(usage []int64, first, end int32, bytes, limit int64) bool {
	for _, used := range usage[first:end] {
		if used+bytes > limit {
			return false
		}
	}
	return true
}
