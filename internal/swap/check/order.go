package check

import (
	"sort"

	"gm/internal/swap"
)

// order numbers operators and actions in the one order in which they are carried out: the actions at an operator, then the operator.
type order struct {
	at      []int32 // operators of the actions
	actions []int   // how many actions come before each operator
}

func newOrder(g *swap.Graph, actions []swap.Action) order {
	o := order{at: make([]int32, len(actions)), actions: make([]int, len(g.Ops))}
	for i, a := range actions {
		o.at[i] = a.At
	}
	for op := range o.actions {
		o.actions[op] = sort.Search(len(actions), func(i int) bool { return int(actions[i].At) > op })
	}
	return o
}

func (o *order) ofOp(op int) int         { return op + o.actions[op] }
func (o *order) ofAction(action int) int { return int(o.at[action]) + action }
func (o *order) moments() int            { return len(o.at) + len(o.actions) }

// stretch is moments, the last included.
type stretch struct{ first, last int }

// covers reports whether one of some stretches, which are in order and apart, covers a moment.
func covers(all []stretch, moment int) bool {
	i := sort.Search(len(all), func(i int) bool { return all[i].last >= moment })
	return i < len(all) && all[i].first <= moment
}

// sum returns the sum of the bytes of stretches at each moment.
func (o *order) sum(each func(add func(stretch, int64))) []int64 {
	sum := make([]int64, o.moments()+1)
	each(func(x stretch, bytes int64) {
		if x.first <= x.last {
			sum[x.first] += bytes
			sum[x.last+1] -= bytes
		}
	})
	for i := 1; i < len(sum); i++ {
		sum[i] += sum[i-1]
	}
	return sum
}
