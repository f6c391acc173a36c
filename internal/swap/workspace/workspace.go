// Package workspace chooses how operators run that can run in several ways: slowly, or faster with a workspace beside what else is in use.
//
// The order of the operators and what is on the device are given, by the program or by a schedule. So an operator's workspace, which is
// there while it alone runs, takes nothing from another's: each has what the limit leaves at its worst moment, and the fastest option
// that fits there is the best. No other set of options within the limit makes a step faster, since no operator that ends earlier delays
// what follows, and what is in use at each moment does not depend on times.
package workspace

import (
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/simulate"
)

// Choice is how each operator of a graph runs: the number of one of its options, or Plain.
type Choice []int32

// Plain is how an operator runs by itself, with none of its options.
const Plain = -1

// Free returns, by operator, the bytes that a schedule of g leaves of a limit at the operator's worst moment: below 0 where it needs more.
// It is an error if the schedule breaks the rules.
func Free(g *swap.Graph, actions []swap.Action, limit int64) ([]int64, error) {
	free := make([]int64, 0, len(g.Ops))
	_, err := simulate.Run(g, actions, instant{}, func(s simulate.Span) {
		if s.Tensor < 0 {
			free = append(free, limit-s.Tensors-s.Base)
		}
	})
	return free, err
}

// instant is a link on which copies take no time. What is in use does not depend on it.
type instant struct{}

func (instant) OutTime(int64) time.Duration { return 0 }
func (instant) InTime(int64) time.Duration  { return 0 }

// Fastest returns for each operator the fastest way to run in so many bytes beside the rest, of equally fast ones that which takes the
// fewest. An operator with less than none has the ways that take none.
func Fastest(g *swap.Graph, free []int64) Choice {
	c := make(Choice, len(g.Ops))
	for i := range g.Ops {
		o := &g.Ops[i]
		c[i] = Plain
		took, bytes := o.Duration, int64(0)
		for k, option := range o.Options {
			if option.Workspace > max(0, free[i]) {
				continue
			}
			if option.Duration < took || option.Duration == took && option.Workspace < bytes {
				c[i], took, bytes = int32(k), option.Duration, option.Workspace
			}
		}
	}
	return c
}

// Within returns for each operator the fastest way to run in the same number of bytes.
func Within(g *swap.Graph, bytes int64) Choice {
	return Fastest(g, slices.Repeat([]int64{bytes}, len(g.Ops)))
}

// InSteps returns what Dymem finds to be free: it adds a step to a layer's workspace until there is no memory for another (section 4.2).
func InSteps(free []int64, step int64) []int64 {
	found := make([]int64, len(free))
	for i, bytes := range free {
		found[i] = max(0, bytes) / step * step
	}
	return found
}

// Bytes returns the workspace of an operator.
func (c Choice) Bytes(g *swap.Graph, op int) int64 {
	if c[op] == Plain {
		return 0
	}
	return g.Ops[op].Options[c[op]].Workspace
}

// Duration returns the time of an operator.
func (c Choice) Duration(g *swap.Graph, op int) time.Duration {
	if c[op] == Plain {
		return g.Ops[op].Duration
	}
	return g.Ops[op].Options[c[op]].Duration
}

// Apply returns the graph in which each operator runs as chosen and has no other options: its duration, and its workspace as a part of Base.
// Everything else is shared with g.
func (c Choice) Apply(g *swap.Graph) *swap.Graph {
	applied := *g
	applied.Ops = slices.Clone(g.Ops)
	for i := range applied.Ops {
		o := &applied.Ops[i]
		o.Duration, o.Base, o.Options = c.Duration(g, i), o.Base+c.Bytes(g, i), nil
	}
	return &applied
}
