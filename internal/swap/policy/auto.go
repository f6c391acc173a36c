package policy

import (
	"errors"
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planAuto returns the fastest of the schedules of all other policies. Of equally fast ones it is that which copies fewer bytes.
func planAuto(p *problem) ([]swap.Action, error) {
	var best member
	var closest *draft.ShortError
	for _, other := range Policies() {
		if other.Name == autoName || best.actions != nil && other.Name == rematName && !p.mayRecompute(best.step) {
			continue
		}
		actions, err := other.plan(p)
		r := result{}
		if err == nil {
			r, err = p.keeps(actions)
		}
		short, isShort := errors.AsType[*draft.ShortError](err)
		switch {
		case isShort && (closest == nil || short.Bytes < closest.Bytes):
			closest = short
		case isShort:
		case err != nil:
			return nil, err
		case best.actions == nil || r.better(&best.result):
			best = member{slices.Clone(actions), r}
			if len(actions) == 0 {
				return nil, nil // nothing has to be moved
			}
		}
	}
	if best.actions == nil {
		return nil, closest
	}
	return best.actions, nil
}
