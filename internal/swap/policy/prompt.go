package policy

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planPrompt moves nothing where the step fits. Otherwise it returns the fastest of the schedules that quick would make for this very amount of
// memory. As none are made for others that takes a small part of the time, and more memory may be slower. Where it finds none, it returns quick's.
func planPrompt(p *problem) ([]swap.Action, error) {
	limit := p.Limits.Device
	if _, short := draft.Over(p.Plain, limit); short <= 0 {
		return nil, nil
	}
	m := maker{problem: p}
	if err := m.add(limit); err != nil {
		return nil, err
	}
	if best := m.best(limit, 0); best != nil {
		return p.lighter(best), nil
	}
	return planQuick(p)
}
