package downsets

import (
	"context"
	"slices"

	"gm/internal/order"
)

// Windows improves an order where its peak is, by exact search in windows around it, each wider than the one before. It ends at a peak that no
// window lowers, or that is at most enough bytes.
func Windows(ctx context.Context, l *order.Links, start []int32, enough int64) []int32 {
	made := slices.Clone(start)
	left := make([]int32, len(l.Problem.Tensors))
	var loads []int64
	for ctx.Err() == nil {
		loads = l.AppendLoads(loads[:0], made, left)
		peak, place := order.Peak(loads)
		if place < 0 || peak <= enough || !lower(ctx, l, made, place, peak, enough) {
			break
		}
	}
	return made
}

// widths are how many operators on either side of the peak are reordered, and windowStates how many sets are looked at in each window.
var widths = []int{6, 12, 25, 50, 100}

const windowStates = 4_000

// lower reorders the smallest window around a place that lowers the peak there.
func lower(ctx context.Context, l *order.Links, made []int32, place int, peak, enough int64) bool {
	for _, width := range widths {
		from, to := max(0, place-width), min(len(made), place+width+1)
		window, result := Search(ctx, l, made, from, to, Limits{Enough: enough, Below: peak, States: windowStates})
		if result == Found {
			copy(made[from:], window)
			return true
		}
		if result == GaveUp || from == 0 && to == len(made) {
			break // a wider window has more sets
		}
	}
	return false
}
