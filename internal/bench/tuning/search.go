package tuning

import (
	"context"
	"slices"

	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// Result is the outcome of a search.
type Result struct {
	Best       []*Outcome // the best first, and of equal ones the simplest; the first is the one to set
	Older      *Outcome   // the best that PyTorch before 2.11 understands
	Default    *Outcome
	Expandable *Outcome
	Recorded   *Outcome // with the settings of the recording; nil if these are the default or differ between programs
	Tried      int      // settings
	Live       int64    // most bytes in use, by the program that uses most: no setting reserves less
}

const (
	width  = 3 // settings whose neighbours are tried in a round
	rounds = 8
	listed = 5 // outcomes

	// A setting that reserves this many times as much as the best is not pursued, nor are its neighbours.
	outOf = 1.25
)

// Search starts from the default, expandable segments and the settings of the recording and improves them, one change at a time. It calls
// done for each setting that it tried, from any goroutine.
func Search(ctx context.Context, jobs []Job, costs sim.CostTable, done func()) (*Result, error) {
	s := &search{trials: trials{jobs, costs, done}, known: map[Setting]*Outcome{}}
	seeds := []Setting{Default(), Expandable()}
	recorded, same := recordedSetting(jobs)
	if same && !slices.Contains(seeds, recorded) {
		seeds = append(seeds, recorded)
	}
	if err := s.try(ctx, seeds, 0); err != nil {
		return nil, err
	}
	if err := s.climb(ctx, knobs(jobs)); err != nil {
		return nil, err
	}
	r := &Result{Best: s.rank(s.distinct(anySetting), listed), Older: s.rank(s.distinct(older), 1)[0], Tried: len(s.known)}
	r.Default, r.Expandable = s.known[Default()], s.known[Expandable()]
	if same && recorded != Default() {
		r.Recorded = s.known[recorded]
	}
	for _, j := range jobs {
		r.Live = max(r.Live, j.PeakLive())
	}
	return r, nil
}

// recordedSetting returns the setting that all jobs were recorded with, and whether there is one.
func recordedSetting(jobs []Job) (Setting, bool) {
	conf, _ := allocconf.Recorded(jobs[0].AllocConf)
	for _, j := range jobs {
		if other, _ := allocconf.Recorded(j.AllocConf); other != conf {
			return Setting{}, false
		}
	}
	return Setting{conf}, true
}

type search struct {
	trials
	known map[Setting]*Outcome
}

// climb tries the neighbours of the best settings until the best no longer change.
func (s *search) climb(ctx context.Context, knobs []knob) error {
	var expanded []Setting
	for range rounds {
		var next []Setting
		best := s.distinct(anySetting)
		for _, o := range best[:min(width, len(best))] {
			if slices.Contains(expanded, o.Setting) {
				continue
			}
			expanded = append(expanded, o.Setting)
			for _, k := range knobs {
				for _, neighbour := range k(o.Setting) {
					if s.known[neighbour] == nil && !slices.Contains(next, neighbour) {
						next = append(next, neighbour)
					}
				}
			}
		}
		if len(next) == 0 {
			return nil
		}
		limit := int64(0)
		if best[0].OOMs == 0 {
			limit = int64(outOf * float64(best[0].Peak))
		}
		if err := s.try(ctx, next, limit); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) try(ctx context.Context, settings []Setting, limit int64) error {
	outcomes, err := s.run(ctx, settings, limit)
	for _, o := range outcomes {
		s.known[o.Setting] = o
	}
	return err
}
