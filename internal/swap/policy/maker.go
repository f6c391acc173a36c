package policy

import (
	"errors"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// maker makes schedules for one amount of memory after the other.
type maker struct {
	*problem
	members []member
	trail
}

// trail is what a maker knows from the amount of memory before.
type trail struct {
	last   []away // joint's choice, if there was one
	taste  int    // the dividing price that was best for it
	rung   int    // how many amounts of memory there were
	hidden bool   // that choice takes no time
}

// member is a schedule and its result.
type member struct {
	actions []swap.Action
	result
}

// best returns the best of the schedules within a limit that take no less than some time, nil if there is none.
func (m *maker) best(limit int64, least time.Duration) *member {
	var best *member
	for i := range m.members {
		if x := &m.members[i]; x.peak <= limit && x.step >= least && (best == nil || x.better(&best.result)) {
			best = x
		}
	}
	return best
}

// add adds the schedules for an amount of memory: joint's, and if that takes any time the others', unless they are known to take longer.
func (m *maker) add(bytes int64) error {
	m.Limits.Device = bytes
	c := newChooser(m.problem)
	best, err := m.choice(c)
	_, short := errors.AsType[*draft.ShortError](err)
	if err != nil && !short {
		return err
	}
	if err == nil {
		m.hidden = best.step == m.Paced[m.Ops()]
		if err := m.addChoice(c, &best); err != nil || m.hidden {
			return err
		}
	}
	return m.addOthers(&best)
}

// addOthers adds the schedules of other policies that may be as fast as joint's choice, or all if that is none.
func (m *maker) addOthers(best *outcome) error {
	var plans []planner
	if best.share == nil || m.mayCopy(best.step) {
		plans = append(plans, planFloor, planBelady, planDymem)
	}
	if best.share == nil || m.mayRecompute(best.step) {
		plans = append(plans, planSketch)
	}
	for _, plan := range plans {
		if err := m.addPlan(plan); err != nil {
			return err
		}
	}
	return nil
}

// choice returns the better of a new choice and of that for the amount of memory before, both improved. The error is a *ShortError.
func (m *maker) choice(c *chooser) (outcome, error) {
	m.taste = min(m.taste, len(c.prices)-1)
	from, end, tries := max(0, m.taste-1), m.taste+2, c.tries()/few
	switch {
	case m.rung%thorough == 0:
		from, end, tries = 0, len(c.prices), c.tries()/many
	case m.hidden:
		from, end = m.taste, m.taste+1
	}
	m.rung++
	best, err := c.first(from, end)
	if err == nil {
		m.taste = best.taste
		c.improve(&best, tries)
	}
	if o, ok := c.adopt(m.last); ok {
		c.improve(&o, tries)
		if err != nil || o.better(&best.result) {
			return o, nil
		}
	}
	return best, err
}

// One of this many amounts of memory is searched thoroughly: with all tastes, and many changes of what they choose. For others there are
// the tastes next to the best one of the amount before, and few changes. These are parts of the changes that joint tries.
const (
	thorough = 4
	many     = 16
	few      = 64
)

// addChoice adds a choice of joint's.
func (m *maker) addChoice(c *chooser, o *outcome) error {
	m.last = nil
	actions, err := c.actions(o)
	if err == nil {
		m.last = slices.Clone(c.aways())
		err = m.addMember(actions)
	}
	return err
}

// addPlan adds the schedule of a policy, if it has one.
func (m *maker) addPlan(plan planner) error {
	actions, err := plan(m.problem)
	if _, short := errors.AsType[*draft.ShortError](err); short {
		return nil
	}
	if err != nil {
		return err
	}
	return m.addMember(actions)
}

// addMember adds a schedule that keeps to the host's limit, whatever its device memory, unless another one takes no more and is as good.
func (m *maker) addMember(actions []swap.Action) error {
	r, err := m.admit(actions)
	if _, short := errors.AsType[*draft.ShortError](err); short {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.members, func(x member) bool { return x.peak <= r.peak && !r.better(&x.result) }) {
		m.members = append(m.members, member{slices.Clone(actions), r})
	}
	return nil
}
