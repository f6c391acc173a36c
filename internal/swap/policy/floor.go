package policy

import (
	"slices"

	"gm/internal/swap"
)

// planFloor is DeepSpeed's offload_activation (its issue 8255): with everything copied to the host memory is at its floor; from there the
// largest tensors are kept as long as the budget allows, and each copy back is begun early enough to be hidden if memory allows.
//
// DeepSpeed compares the floor and a tensor's size with the budget. Here a tensor is kept if it fits at each operator.
func planFloor(p *problem) ([]swap.Action, error) {
	var all []away
	usage := append([]int64(nil), p.plain...)
	for _, x := range p.mainGaps() {
		bytes := p.graph.Tensors[x.tensor].Bytes
		all = append(all, away{x, bytes})
		plus(usage, x.after+1, x.before, -bytes)
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b away) int { return int(b.bytes - a.bytes) })
	kept := make([]bool, len(p.graph.Tensors))
	for _, x := range order {
		if fits(usage, x.after+1, x.before, x.bytes, p.limits.Device) {
			kept[x.tensor] = true
			plus(usage, x.after+1, x.before, x.bytes)
		}
	}
	return p.realize(slices.DeleteFunc(all, func(x away) bool { return kept[x.tensor] }))
}

// fits says whether so many bytes more keep to a limit at the operators from first to the one before end.
func fits(usage []int64, first, end int32, bytes, limit int64) bool {
	for _, used := range usage[first:end] {
		if used+bytes > limit {
			return false
		}
	}
	return true
}
