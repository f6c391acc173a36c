package papers

import (
	"context"
	"errors"
	"fmt"

	"gm/internal/order"
	"gm/internal/order/downsets"
	"gm/internal/order/greedy"
)

// ErrLarge is wrapped by the error of [MODeL] for a problem that the search does not solve.
var ErrLarge = errors.New("too large to be solved exactly")

// MODeL returns an order of least peak, the optimum of MODeL's program with one operator a step, found by exact search over so many sets of
// operators at most. The error wraps [ErrLarge] if these do not suffice.
func MODeL(ctx context.Context, l *order.Links, states int) ([]int32, error) {
	n := l.Problem.Ops()
	if n > downsets.MaxOps {
		return nil, fmt.Errorf("%d operators, of at most %d: %w", n, downsets.MaxOps, ErrLarge)
	}
	start := greedy.Order(l, greedy.LeastPeak)
	peak, _ := order.Peak(l.Loads(start))
	made, result := downsets.Search(ctx, l, start, 0, n, downsets.Limits{Below: peak, States: states})
	switch result {
	case downsets.Found:
		return made, nil
	case downsets.None:
		return start, nil
	}
	return nil, fmt.Errorf("%d operators, more than %d sets that can have run: %w", n, states, ErrLarge)
}
