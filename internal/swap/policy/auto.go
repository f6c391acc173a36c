package policy

import (
	"errors"
	"math/bits"
	"slices"
	"sort"

	"gm/internal/swap"
)

// planAuto does nothing where that fits: nothing is faster. Otherwise it returns the fastest of a family of schedules that keeps to the
// limits. The family does not depend on how much memory there is, but for its end: it is made for one amount of memory after the other,
// up to the next one above the limit. So what is found with less memory is found with more, and more is never slower. A problem keeps its
// family: for a limit above the one before it is made from there on.
func planAuto(p *problem) ([]swap.Action, error) {
	limit := p.limits.Device
	op, short := over(p.plain, limit)
	if short <= 0 {
		return nil, nil
	}
	if p.family == nil {
		p.family = &family{problem: p}
	}
	f := p.family
	err := f.climb(limit)
	p.limits.Device = limit
	if err != nil {
		return nil, err
	}
	best := (*member)(nil)
	closest := &ShortError{Bytes: short, Op: op}
	for i := range f.members {
		m := &f.members[i]
		switch missing := m.peak - limit; {
		case missing <= 0 && (best == nil || m.better(&best.result)):
			best = m
		case missing > 0 && missing < closest.Bytes:
			closest = &ShortError{Bytes: missing, Op: m.op}
		}
	}
	if best == nil {
		return nil, closest
	}
	return f.lighter(best), nil
}

// lighter returns the actions of a schedule or, if it takes no time, those of one that takes none either and copies less.
func (f *family) lighter(best *member) []swap.Action {
	if best.step > f.begin[f.ops()] {
		return best.actions
	}
	c := newChooser(f.problem)
	if o, err := c.first(0, len(c.prices)); err == nil && o.better(&best.result) {
		if actions, err := c.actions(&o); err == nil && f.accept(actions) == nil {
			return actions
		}
	}
	return best.actions
}

// member is a schedule and what it came to.
type member struct {
	actions []swap.Action
	result
}

// family is what auto chooses from.
type family struct {
	*problem
	members []member
	last    []away // joint's choice for the amount of memory before, if there is one
	taste   int    // the dividing price that was best for it
	rung    int    // how many amounts of memory there were
	hidden  bool   // that choice takes no time

	least, top int64 // amounts of memory: what the largest operator takes, and what is in use at worst when nothing is moved
	fine       int64 // the least step between two; 0 before the start
	at, next   int64 // the last that schedules were made for, and the next
}

// climb makes the schedules for one amount of memory after the other, up to the first that is the limit or more. The first is the least
// that is found to be enough; the others are multiples of powers of two, so that round limits are among them, and the closer to each other
// the less memory there is: where it is short a little more makes steps a lot faster.
func (f *family) climb(limit int64) error {
	if f.fine == 0 {
		if err := f.start(); err != nil {
			return err
		}
	}
	for f.at < limit && f.next < f.top {
		f.limits.Device, f.at = f.next, f.next
		if err := f.add(); err != nil {
			return err
		}
		unit := max(f.fine, powerOfTwo((f.at-f.least)/f.octave()))
		f.next = f.at/unit*unit + unit
	}
	return nil
}

// start finds the first amount of memory, and makes what does not depend on it.
func (f *family) start() error {
	if err := f.addPlan(planMemo); err != nil {
		return err
	}
	f.top, f.least, f.at = slices.Max(f.plain), f.graph.Least(), -1
	f.fine = powerOfTwo((f.top - f.least) / (16 * f.octave()))
	first := sort.Search(int((f.top-f.least)/f.fine), func(i int) bool { return f.enough(f.least + int64(i)*f.fine) })
	f.next = f.least + int64(first)*f.fine
	return nil
}

// octave returns how many amounts of memory there are each time that what is above the least doubles: fewer for graphs that take long.
func (f *family) octave() int64 {
	const most, work = 8, 6000
	return min(most, max(1, most*work/int64(len(f.graph.Ops)+len(f.graph.Tensors)+1)))
}

// powerOfTwo returns the greatest power of two up to a number, at least 1.
func powerOfTwo(n int64) int64 { return 1 << max(0, bits.Len64(uint64(max(0, n)))-1) }

// enough says whether a policy that is fast to ask makes do with an amount of memory.
func (f *family) enough(bytes int64) bool {
	f.limits.Device = bytes
	for _, plan := range []planner{planBelady, planFloor} {
		if _, err := plan(f.problem); err == nil {
			return true
		}
	}
	_, err := newChooser(f.problem).first(0, 1)
	return err == nil
}

// add adds the schedules for an amount of memory: joint's, and if that takes any time the others'.
func (f *family) add() error {
	c := newChooser(f.problem)
	best, err := f.choice(c)
	_, short := errors.AsType[*ShortError](err)
	if err != nil && !short {
		return err
	}
	if err == nil {
		f.hidden = best.step == f.begin[f.ops()]
		if err := f.addChoice(c, &best); err != nil || f.hidden {
			return err
		}
	}
	for _, plan := range []planner{planFloor, planBelady, planDymem} {
		if err := f.addPlan(plan); err != nil {
			return err
		}
	}
	return nil
}

// choice returns the better of a new choice and of that for the amount of memory before, both improved. The error is a *ShortError.
func (f *family) choice(c *chooser) (outcome, error) {
	f.taste = min(f.taste, len(c.prices)-1)
	from, end, tries := max(0, f.taste-1), f.taste+2, c.tries()/few
	switch {
	case f.rung%thorough == 0:
		from, end, tries = 0, len(c.prices), c.tries()/many
	case f.hidden:
		from, end = f.taste, f.taste+1
	}
	f.rung++
	best, err := c.first(from, end)
	if err == nil {
		f.taste = best.taste
		c.improve(&best, tries)
	}
	if o, ok := c.adopt(f.last); ok {
		c.improve(&o, tries)
		if err != nil || o.better(&best.result) {
			return o, nil
		}
	}
	return best, err
}

// Of so many amounts of memory one is looked at thoroughly: with all tastes, and many changes of what they choose. For others there are
// the tastes next to the best one of the amount before, and few changes. These are parts of the changes that joint tries.
const (
	thorough = 8
	many     = 4
	few      = 32
)

// addChoice adds a choice of joint's.
func (f *family) addChoice(c *chooser, o *outcome) error {
	f.last = nil
	actions, err := c.actions(o)
	if err == nil {
		f.last = c.aways()
		err = f.addMember(actions)
	}
	return err
}

// addPlan adds what a policy plans, if it does.
func (f *family) addPlan(plan planner) error {
	actions, err := plan(f.problem)
	if _, short := errors.AsType[*ShortError](err); short {
		return nil
	}
	if err != nil {
		return err
	}
	return f.addMember(actions)
}

// addMember adds a schedule that keeps to the limit of the host, whatever it takes of the device, unless another takes no more and is as good.
func (f *family) addMember(actions []swap.Action) error {
	r, err := f.admit(actions)
	if _, short := errors.AsType[*ShortError](err); short {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(f.members, func(m member) bool { return m.peak <= r.peak && !r.better(&m.result) }) {
		f.members = append(f.members, member{slices.Clone(actions), r})
	}
	return nil
}
