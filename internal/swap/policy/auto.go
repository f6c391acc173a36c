package policy

import (
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planAuto does nothing where that fits: nothing is faster. Otherwise it returns the fastest of a family of schedules that keeps to the
// limits. Most of the family does not depend on how much memory there is, but for its end: it is made for one amount of memory after the
// other, up to the next one above the limit. What is found there with less memory is found with more. The rest is made for finer amounts
// next to the limit, and not used where it is faster than what the amount above has. So more memory is never slower. A problem keeps its
// family: for a limit above the one before it is made from there on.
func planAuto(p *problem) ([]swap.Action, error) {
	limit := p.Limits.Device
	op, short := draft.Over(p.Plain, limit)
	if short <= 0 {
		return nil, nil
	}
	if p.family == nil {
		p.family = newFamily(p)
	}
	err := p.family.grow(limit)
	p.Limits.Device = limit
	if err != nil {
		return nil, err
	}
	if best := p.family.best(limit); best != nil {
		return p.lighter(best), nil
	}
	return nil, p.family.closest(limit, &draft.ShortError{Bytes: short, Op: op})
}

// best returns the best schedule within a limit, nil if there is none. With more memory those for the finer amounts may not be there, but
// those for the amount above them are: none is taken that is faster than what that amount has.
func (f *family) best(limit int64) *member {
	fastest := time.Duration(0)
	if above := f.coarse.best(f.at, 0); f.at >= limit && above != nil {
		fastest = above.step
	}
	best, fine := f.coarse.best(limit, 0), f.fine.best(limit, fastest)
	if best == nil || fine != nil && fine.better(&best.result) {
		return fine
	}
	return best
}

// closest returns the error of the schedule that misses least to keep to a limit, or another one if that misses no more.
func (f *family) closest(limit int64, closest *draft.ShortError) *draft.ShortError {
	for _, m := range append(f.coarse.members, f.fine.members...) {
		if missing := m.peak - limit; missing > 0 && missing < closest.Bytes {
			closest = &draft.ShortError{Bytes: missing, Op: m.op}
		}
	}
	return closest
}

// lighter returns the actions of a schedule or, if it takes no time, those of one that takes none either and copies less.
func (p *problem) lighter(best *member) []swap.Action {
	if best.step > p.Begin[p.Ops()] {
		return best.actions
	}
	c := newChooser(p)
	if o, err := c.first(0, len(c.prices)); err == nil && o.better(&best.result) {
		if actions, err := c.actions(&o); err == nil && p.accept(actions) == nil {
			return actions
		}
	}
	return best.actions
}
