package fit

import (
	"errors"
	"slices"
	"sync"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// search finds the least capacity that is enough.
//
// A larger GPU may fail where a smaller one does not, because a cache that was emptied earlier may later be filled better. So the program
// is replayed on each card, and the least capacity is then found by bisection below the smallest card that it runs on. After that 32
// capacities below the result are tried, and the search continues from the least of these that is enough. The result is a capacity with
// which a replay ran to the end.
type search struct {
	try     func(capacity int64) (outcome, error) // 0 for no limit
	replays int
}

// fill completes a result that has Requested.
func (s *search) fill(r *Result) error {
	ends, err := s.tryAll([]int64{0})
	if err == nil && ends[0].fits {
		r.Peak = ends[0].peak
	}
	if err == nil {
		err = s.tryCards(r)
	}
	if err == nil && r.Peak > 0 {
		err = s.narrow(r)
	}
	r.Replays = s.replays
	return err
}

// tryAll tries several capacities at the same time.
func (s *search) tryAll(capacities []int64) ([]outcome, error) {
	s.replays += len(capacities)
	ends := make([]outcome, len(capacities))
	errs := make([]error, len(capacities))
	var all sync.WaitGroup
	for i, capacity := range capacities {
		all.Go(func() { ends[i], errs[i] = s.try(capacity) })
	}
	all.Wait()
	return ends, errors.Join(errs...)
}

// tryCards tries each card that is not too small for what is requested.
func (s *search) tryCards(r *Result) error {
	var capacities []int64
	first := -1
	for i, card := range CardsBeside(r.Outside) {
		r.Cards = append(r.Cards, OnCard{Card: card})
		if r.Peak > 0 && card.Usable >= r.Requested {
			if first < 0 {
				first = i
			}
			capacities = append(capacities, card.Usable)
		}
	}
	ends, err := s.tryAll(capacities)
	for i, end := range ends {
		r.Cards[first+i].Fits, r.Cards[first+i].Retries = end.fits, end.retries
	}
	return err
}

// step is the precision of the search in bytes: the unit in which a driver hands out memory.
const step = cuda.Granularity

// probes is how many capacities below the result are tried, at equal distances.
const probes = 32

// narrow finds r.Least, which is at most r.Peak and at most the smallest card that fits.
func (s *search) narrow(r *Result) error {
	floor := max(r.Requested/step-1, 0) // in steps: too small
	bottom, top := floor, (r.Peak+step-1)/step
	for _, c := range r.Cards {
		if c.Fits {
			top = min(top, c.Usable/step)
		}
	}
	for _, c := range r.Cards {
		if !c.Fits && c.Usable/step < top {
			bottom = max(bottom, c.Usable/step)
		}
	}
	end, err := s.reach(&bottom, &top)
	if err != nil || !end.fits {
		return err
	}
	for {
		if top, end, err = s.bisect(bottom, top, end); err != nil {
			return err
		}
		r.Least, r.Retries = top*step, end.retries
		lower, found, err := s.probe(floor, top)
		if err != nil || !found.fits {
			return err
		}
		bottom, top, end = floor, lower, found
	}
}

// reach doubles top, in steps, until it fits, and raises bottom to the last that does not. An allocator whose settings are shares of the
// memory may need more than it reserves.
func (s *search) reach(bottom, top *int64) (outcome, error) {
	for {
		ends, err := s.tryAll([]int64{*top * step})
		if err != nil || ends[0].fits || *top*step >= sim.Endless {
			return ends[0], err
		}
		*bottom, *top = *top, 2**top
	}
}

// bisect returns a capacity, in steps, above bottom and up to top that fits while the one a step below it does not, and how its
// replay ended. Top fits, as end says.
func (s *search) bisect(bottom, top int64, end outcome) (int64, outcome, error) {
	for top-bottom > 1 {
		middle := bottom + (top-bottom)/2
		found, err := s.tryAll([]int64{middle * step})
		if err != nil {
			return top, end, err
		}
		if found[0].fits {
			top, end = middle, found[0]
		} else {
			bottom = middle
		}
	}
	return top, end, nil
}

// probe tries capacities between floor and top, in steps. It returns the least of them that fits, if any does, and how its replay ended.
func (s *search) probe(floor, top int64) (int64, outcome, error) {
	var capacities []int64
	for i := int64(1); i <= probes; i++ {
		if at := floor + (top-floor)*i/(probes+1); at > floor {
			capacities = append(capacities, at*step)
		}
	}
	capacities = slices.Compact(capacities)
	ends, err := s.tryAll(capacities)
	i := slices.IndexFunc(ends, func(o outcome) bool { return o.fits })
	if err != nil || i < 0 {
		return 0, outcome{}, err
	}
	return capacities[i] / step, ends[i], nil
}
