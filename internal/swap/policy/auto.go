package policy

import (
	"errors"
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planAuto returns the fastest of the schedules of all other policies. Of equally fast ones it is that which copies fewer bytes. Where there is
// none, the error is that of quick, which names what a schedule lacks: others' name what was missing where they gave up.
func planAuto(p *problem) ([]swap.Action, error) {
	var best member
	var failed error
	for _, other := range Policies() {
		if other.Name == autoName || best.actions != nil && other.Name == rematName && !p.mayRecompute(best.step) {
			continue
		}
		actions, err := other.plan(p)
		r := result{}
		if err == nil {
			r, err = p.keeps(actions)
		}
		_, short := errors.AsType[*draft.ShortError](err)
		switch {
		case other.Name == quickName && short, err != nil && !short && failed == nil:
			failed = err
		case err != nil:
		case best.actions == nil || r.better(&best.result):
			best = member{slices.Clone(actions), r}
			if len(actions) == 0 {
				return nil, nil // nothing has to be moved
			}
		}
	}
	if best.actions == nil {
		return nil, failed
	}
	return best.actions, nil
}
