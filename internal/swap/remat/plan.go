package remat

import (
	"cmp"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// Plan returns a schedule that recomputes, the best that a search of some seconds finds or, where that finds none, one made as
// the step goes. It does the same every time. The error is a *[draft.ShortError].
func Plan(p *draft.Problem) ([]swap.Action, error) {
	work := int64(mostWork)
	if ops := int64(p.Ops()); ops > manyOps {
		work = work * ops / manyOps
	}
	best := begin(p, true, work)
	if s := begin(p, false, work); s.better(best) {
		best = s
	}
	actions, err := newSearch(best).run(mostRounds, mostWork)
	if err == nil {
		return actions, nil
	}
	if actions, failed := online(p); failed == nil {
		return actions, nil
	}
	return nil, err
}

// Sketch does so with a search of some milliseconds, and gives up soon where memory is very short.
func Sketch(p *draft.Problem) ([]swap.Action, error) {
	const rounds, work = 100, 1e6
	s := begin(p, true, work)
	if s.over > 0 {
		return nil, s.short()
	}
	return newSearch(s).run(rounds, work)
}

// begin returns a schedule to begin with, for so much work: by what tensors free of memory that is short, or by all that they free where it is.
func begin(p *draft.Problem, whole bool, work int64) *state {
	s := newState(p)
	s.most = work
	s.drop(nil, whole)
	s.prune()
	return s
}

// better reports whether a schedule takes less memory that is not there than another, or as much and less time.
func (s *state) better(than *state) bool {
	return cmp.Or(cmp.Compare(s.over, than.over), cmp.Compare(s.step, than.step)) < 0
}

// short returns an error for a schedule that takes more memory than there is.
func (s *state) short() error {
	worst := int32(0)
	for v := range s.Ops() {
		if s.excess(v) > s.excess(worst) {
			worst = v
		}
	}
	return &draft.ShortError{Bytes: s.excess(worst), Op: worst}
}
