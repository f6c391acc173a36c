// Package papers has the methods of papers that order operators, as they describe them, so that they can be compared with on the same graphs.
//
//	roam.go, updates.go   ROAM (Shu et al., arXiv 2310.19295, and the code that the authors published)
//	model.go, program.go  MODeL (Steiner et al., ICML 2023): exact search where it is small, and the integer program itself
package papers

import (
	"context"
	"slices"

	"gm/internal/order"
	"gm/internal/order/downsets"
	"gm/internal/order/greedy"
)

// ROAM orders a step as ROAM does:
//
//   - updates of parameters run at once, before the next operator of the backward pass, but for those that would raise the peak (updates.go);
//   - the operators that all others come before or behind, its key points, cut the graph into segments. A forward segment and the backward
//     segment inside of which it lies are one task there, which matters to the layout; for the order they are independent;
//   - each segment of up to leafOps operators is solved for the least peak, there by an integer program in limited time, here by exact search
//     of limited size. A segment that is too large, or not solved within the limit, is ordered by lpmf.
func ROAM(ctx context.Context, l *order.Links) []int32 {
	early, problem := earlyUpdates(l)
	forced := order.Link(problem)
	made := greedy.Order(forced, greedy.LeastPeak)
	from := 0
	for _, end := range append(keyPoints(forced, made), len(made)) {
		if end-from > 1 && end-from <= leafOps {
			peak, _ := order.Peak(forced.Loads(made)[from:end])
			leaf, result := downsets.Search(ctx, forced, made, from, end, downsets.Limits{Below: peak, States: leafStates})
			if result == downsets.Found {
				copy(made[from:], leaf)
			}
		}
		from = end
	}
	for i, op := range made {
		made[i] = early[op]
	}
	return made
}

// leafOps is ROAM's node limit (NL: 100 for most networks in its settings), leafStates stands for its time limit of 120 s.
const (
	leafOps    = 100
	leafStates = 50_000
)

// keyPoints returns the places right behind operators that are comparable with all others: what stands before them in the order comes before
// them, and what stands behind comes behind.
func keyPoints(l *order.Links, made []int32) []int {
	place := make([]int32, len(made))
	for i, op := range made {
		place[op] = int32(i)
	}
	back := slices.Clone(made)
	slices.Reverse(back)
	before := bound(made, func(op int32) []int32 { return l.Succs.Of(op) }, func(op int32) int { return int(place[op]) })
	behind := bound(back, func(op int32) []int32 { return l.Preds.Of(op) }, func(op int32) int { return len(made) - 1 - int(place[op]) })
	var points []int
	for i, op := range made[:max(0, len(made)-1)] {
		if before[op] && behind[op] {
			points = append(points, i+1)
		}
	}
	return points
}

// bound reports for each operator of an order whether all that stand before it come before it: each of them then has a neighbour in the
// relation that stands no later than the operator, so that following these neighbours ends at it.
func bound(made []int32, next func(int32) []int32, place func(int32) int) []bool {
	all := make([]bool, len(made))
	farthest := 0 // the first place by which each operator so far has a neighbour behind it
	for i, op := range made {
		all[op] = farthest <= i
		nearest := len(made)
		for _, other := range next(op) {
			nearest = min(nearest, place(other))
		}
		farthest = max(farthest, nearest)
	}
	return all
}
