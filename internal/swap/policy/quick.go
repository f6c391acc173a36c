package policy

import (
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planQuick moves nothing where the step fits: nothing is faster. Otherwise it returns the fastest schedule of a family that keeps to the limits.
// Most of the family is independent of the limit: schedules for a fixed series of growing amounts of memory, up to the first amount above the
// limit. So what is found with less memory is found with more. The rest is made for finer amounts near the limit, and is not used where it is
// faster than the schedule of the amount above. So more memory is never slower. A problem keeps its family, which grows when the limit does.
func planQuick(p *problem) ([]swap.Action, error) {
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

// best returns the best schedule within a limit, nil if there is none. With more memory the schedules of the finer amounts may be missing, but
// those of the amount above them exist: none is taken that is faster than the best of that amount.
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

// closest returns the error of the schedule that exceeds a limit least, or the given error if that is no worse.
func (f *family) closest(limit int64, closest *draft.ShortError) *draft.ShortError {
	for _, m := range append(f.coarse.members, f.fine.members...) {
		if missing := m.peak - limit; missing > 0 && missing < closest.Bytes {
			closest = &draft.ShortError{Bytes: missing, Op: m.op}
		}
	}
	return closest
}

// lighter returns the actions of a schedule or, if it costs no time, those of one that costs none either and copies less.
func (p *problem) lighter(best *member) []swap.Action {
	if best.step > p.Paced[p.Ops()] {
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
