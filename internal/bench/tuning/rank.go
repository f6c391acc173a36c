package tuning

import (
	"cmp"
	"math"
	"slices"
)

// Peaks that differ by less than 1 %, and driver times that differ by less than half a percent of the run, count as equal: two runs of a
// job differ by more. Then the simpler setting is better. Each change has to save 1 % by itself. Where a request failed no difference of peaks
// counts as equal: what is left is for the requests that would have followed.
const (
	peakTie   = 0.01
	driverTie = 0.005
)

// compare orders outcomes, the better first. Only equal settings are equal.
func compare(a, b *Outcome) int {
	return cmp.Or(
		cmp.Compare(a.OOMs, b.OOMs), cmp.Compare(a.Retries, b.Retries), cmp.Compare(a.Peak, b.Peak), cmp.Compare(a.DriverNS, b.DriverNS),
		cmp.Compare(a.Setting.Changes(), b.Setting.Changes()), cmp.Compare(a.Setting.String(), b.Setting.String()),
	)
}

// distinct returns the outcomes that were completed and whose settings are wanted, the best first. Of outcomes with the same figures it
// keeps the one of the simplest setting.
func (s *search) distinct(wanted func(Setting) bool) []*Outcome {
	var all []*Outcome
	for _, o := range s.known {
		if !o.abandoned && wanted(o.Setting) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, compare)
	return slices.CompactFunc(all, func(a, b *Outcome) bool {
		return a.OOMs == b.OOMs && a.DriverNS == b.DriverNS && slices.Equal(a.Peaks, b.Peaks)
	})
}

// anySetting accepts all settings.
func anySetting(Setting) bool { return true }

// older accepts settings without what PyTorch 2.11 added.
func older(s Setting) bool { return s.LargeSegment == Default().LargeSegment }

// rank returns the n best of left. Each is the best of those after it.
func (s *search) rank(left []*Outcome, n int) []*Outcome {
	var run int64
	tie := peakTie
	for _, j := range s.jobs {
		run += j.DurationNS()
		if j.Failed {
			tie = 0
		}
	}
	var best []*Outcome
	for len(left) > 0 && len(best) < n {
		o := choose(left, tie, int64(driverTie*float64(run)))
		best = append(best, o)
		left = slices.DeleteFunc(left, func(other *Outcome) bool { return other == o })
	}
	return best
}

// worth is the peak plus what the changes of the setting have to save.
func (o *Outcome) worth() float64 {
	return float64(o.Peak) * (1 + peakTie*float64(o.Setting.Changes()))
}

// choose returns the simplest of the outcomes that no other beats by more than a tie. all is ordered by compare.
func choose(all []*Outcome, tie float64, tieNS int64) *Outcome {
	limit := math.Inf(1)
	for _, o := range all {
		if o.OOMs == all[0].OOMs && o.Retries == all[0].Retries {
			limit = min(limit, o.worth()*(1+tie))
		}
	}
	least := int64(math.MaxInt64)
	alike := func(o *Outcome) bool {
		return o.OOMs == all[0].OOMs && o.Retries == all[0].Retries && o.worth() <= limit
	}
	for _, o := range all {
		if alike(o) {
			least = min(least, o.DriverNS)
		}
	}
	var best *Outcome
	for _, o := range all {
		if !alike(o) || o.DriverNS-least > tieNS {
			continue
		}
		if best == nil || o.Setting.Changes() < best.Setting.Changes() {
			best = o
		}
	}
	return best
}
