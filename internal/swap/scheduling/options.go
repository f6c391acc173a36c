package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/workspace"
)

// Chosen is a schedule and how operators run under it.
type Chosen struct {
	*Made
	Graph  *swap.Graph      // in which they run so: the one that the schedule is for
	Choice workspace.Choice // among the options of the graph that was given
}

// MakeChoosing makes a schedule of g by a policy and chooses how operators with options run, for a fast step: the schedule may move more to
// make room for workspaces. So one is made for each of some sets of options, which are the fastest within an amount of bytes. Each operator
// then takes the fastest option within what the schedule leaves, and the fastest step wins. Last, the operators that could gain the most get
// their fastest option in turn, for as long as that makes the step faster. The error of a policy that has no schedule, not even without
// workspaces, is a *policy.ShortError.
func MakeChoosing(g *swap.Graph, p policy.Policy, limits Limits) (*Chosen, error) {
	s := chooser{graph: g, policy: p, limits: limits}
	var failed error
	for _, set := range optionSets(g) {
		if failed = s.try(set); failed != nil && !isShort(failed) {
			return nil, failed
		}
		if s.still {
			break // all have what the limit leaves: smaller sets end up the same
		}
	}
	if s.best == nil {
		return nil, failed
	}
	return s.best, s.improve()
}

func isShort(err error) bool {
	_, short := errors.AsType[*policy.ShortError](err)
	return short
}

// chooser tries sets of options.
type chooser struct {
	graph  *swap.Graph
	policy policy.Policy
	limits Limits
	best   *Chosen
	still  bool // nothing was moved by the last schedule
}

// try makes a schedule for a set of options, and keeps what comes of it if the step is the fastest.
func (s *chooser) try(set workspace.Choice) error {
	made, err := Make(set.Apply(s.graph), s.policy, s.limits)
	if err != nil {
		return err
	}
	s.still = len(made.Actions) == 0
	chosen, err := s.fill(set, made)
	if err == nil && (s.best == nil || chosen.Moved.Step < s.best.Moved.Step) {
		s.best = chosen
	}
	return err
}

// improved is how many operators are tried with their fastest option.
const improved = 16

// improve tries the operators that could gain the most.
func (s *chooser) improve() error {
	fastest := workspace.Within(s.graph, math.MaxInt64)
	gain := func(op int) time.Duration { return s.best.Choice.Duration(s.graph, op) - fastest.Duration(s.graph, op) }
	ops := make([]int, 0, len(s.graph.Ops))
	for op := range s.graph.Ops {
		if gain(op) > 0 {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b int) int { return cmp.Compare(gain(b), gain(a)) })
	for _, op := range ops[:min(improved, len(ops))] {
		if gain(op) == 0 {
			continue
		}
		set := slices.Clone(s.best.Choice)
		set[op] = fastest[op]
		if err := s.try(set); err != nil && !isShort(err) {
			return err
		}
	}
	return nil
}

// The sets of options are those of the largest workspace, and of a quarter of it again and again, down to one of leastSet bytes.
const (
	quarter  = 4
	leastSet = 1 << 20
)

// optionSets returns sets of options, the fastest first and that without workspaces last.
func optionSets(g *swap.Graph) []workspace.Choice {
	most := int64(0)
	for i := range g.Ops {
		for _, o := range g.Ops[i].Options {
			most = max(most, o.Workspace)
		}
	}
	var sets []workspace.Choice
	add := func(bytes int64) {
		set := workspace.Within(g, bytes)
		if len(sets) == 0 || !slices.Equal(set, sets[len(sets)-1]) {
			sets = append(sets, set)
		}
	}
	for bytes := most; bytes >= leastSet; bytes /= quarter {
		add(bytes)
	}
	add(0)
	return sets
}

// fill lets each operator take the fastest option within what a schedule leaves, which was made for a set of them.
func (s *chooser) fill(set workspace.Choice, made *Made) (*Chosen, error) {
	g := s.graph
	free, err := workspace.Free(set.Apply(g), made.Actions, s.limits.Device)
	if err != nil {
		return nil, err
	}
	for i := range free {
		free[i] += set.Bytes(g, i)
	}
	c := &Chosen{Choice: workspace.Fastest(g, free)}
	c.Graph = c.Choice.Apply(g)
	if c.Made, err = Take(c.Graph, made.Schedule.Schedule, s.limits); err != nil {
		return nil, fmt.Errorf("BUG: with workspaces the schedule of policy %s cannot be followed: %w", made.Policy, err)
	}
	return c, nil
}
