package dsa

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"gm/internal/dsa/exact"
)

// hunt looks for ever lower layouts of an instance by exact search. Which order of search finds one soon differs from
// instance to instance, by factors of a thousand, and so does which height is easy: many hunters search in orders of
// their own, at heights between the bound and the best peak, in rounds of which each may take twice as long as the last. A
// search that ends without a layout proves that there is none: the bound rises.
//
// What a hunter finds in a round depends on the rounds before and on nothing else, so the outcome is the same for any
// number of workers, as long as ctx does not end it.
type hunt struct {
	ctx      context.Context
	c        *component
	decide   bool // whether nothing lower than the goal is wanted
	seed     uint64
	progress func(peak, bound int64) // told of every better peak or bound, in units

	goal    int64 // units
	hunters []hunter
	round   int
	doubled int   // how often the attempts became twice as long
	nodes   int64 // looked at, in all
}

// hunter is one order of search, and what came of its last attempt.
type hunter struct {
	search  *exact.Search
	attempt exact.Attempt
	outcome exact.Outcome
	peak    int64 // units, of the layout that was found
}

// The first rounds go by these keys, each with every preference of corners.
var huntKeys = [...]key{"TZ", "TWA", "UTV", "V", "TAW"}

// huntShares are the heights that are tried, from the bound at 0 to just under the best peak at 1.
var huntShares = [...]float64{0, 0.9, 0.5, 0.25, 0.75}

const (
	leastNodes  = 2 // of an attempt in the first round, for each buffer
	firstRounds = 3 // after these every other hunter goes by random keys
	few         = 3
	fewLives    = 1 << 17 // sections that all buffers live in, added up, from which on there are few hunters
)

// huntersOf returns how many hunters there are: fewer in a large component, where each takes long.
func huntersOf(lives int64) int {
	return max(few, min(len(huntKeys)*int(exact.Preferences), int(few*fewLives/max(lives, 1))))
}

// step is one round on all workers. A layout that fits the goal is good enough.
func (h *hunt) step(goal int64, workers []workspace) {
	h.goal = goal
	h.send(workers)
	h.gather()
	for i := range h.hunters {
		h.nodes += h.hunters[i].search.Nodes()
	}
	h.round++
}

// work returns what all rounds took, in the unit of [exact.Search.Work].
func (h *hunt) work() int64 {
	work := int64(0)
	for i := range h.hunters {
		work += h.hunters[i].search.Work()
	}
	return work
}

// done says whether there is nothing left to look for.
func (h *hunt) done() bool {
	return h.c.peak <= max(h.goal, h.c.bound) || h.decide && h.c.bound > h.goal || h.ctx.Err() != nil
}

// send lets all hunters make an attempt.
func (h *hunt) send(workers []workspace) {
	var wait sync.WaitGroup
	var next atomic.Int64
	found := make([]atomic.Int64, len(h.hunters)) // the peak of each, 0 while there is none
	for i := range workers {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(h.hunters)); n = next.Add(1) - 1 {
				h.try(int(n), found, &workers[i])
			}
		})
	}
	wait.Wait()
}

// try lets one hunter make its attempt. It is of no use once one before it has found something as low as it may find.
func (h *hunt) try(n int, found []atomic.Int64, w *workspace) {
	hunter := &h.hunters[n]
	if hunter.search == nil {
		hunter.search = exact.New(exact.Instance{Lo: h.c.in.lo, Hi: h.c.in.hi, Size: h.c.in.size, Sections: h.c.in.sections()})
	}
	h.prepare(n, w)
	hunter.attempt.Stop = func() bool { return h.ctx.Err() != nil || beaten(found[:n], hunter.attempt.Capacity) }
	hunter.outcome = hunter.search.Try(hunter.attempt)
	if hunter.outcome == exact.Fits {
		hunter.peak = 0
		for k, size := range h.c.in.size {
			hunter.peak = max(hunter.peak, hunter.search.Offset(k)+size)
		}
		found[n].Store(hunter.peak)
	}
}

// beaten says whether a peak of at most capacity was found.
func beaten(found []atomic.Int64, capacity int64) bool {
	for i := range found {
		if peak := found[i].Load(); peak > 0 && peak <= capacity {
			return true
		}
	}
	return false
}

// prepare says what a hunter is to look for in this round.
func (h *hunt) prepare(n int, w *workspace) {
	a := &h.hunters[n].attempt
	a.Capacity = max(h.c.bound, h.goal)
	if !h.decide {
		share := huntShares[(h.round+n)%len(huntShares)]
		a.Capacity += int64(math.Round(share * float64(h.c.peak-1-a.Capacity)))
	}
	a.Nodes = int64(leastNodes*h.c.in.len()) << min(h.doubled, 40)
	a.Prefer, a.Level = exact.Preference(n%int(exact.Preferences)), n%2 == 1
	if h.round < firstRounds || n%4 < 2 {
		a.Rank = append(a.Rank[:0], w.ranking.byKey(h.c.in, huntKeys[n/int(exact.Preferences)])...)
	} else {
		a.Rank = append(a.Rank[:0], w.ranking.byMix(h.c.in, h.seed, uint64(h.round*len(h.hunters)+n))...)
	}
}

// gather takes in what the hunters have found. Of those with a layout the lowest counts, of equals the first.
func (h *hunt) gather() {
	peak, bound := h.c.peak, h.c.bound
	for i := range h.hunters {
		switch hunter := &h.hunters[i]; {
		case hunter.outcome == exact.Fails:
			bound = max(bound, hunter.attempt.Capacity+1)
		case hunter.outcome == exact.Fits && hunter.attempt.Capacity < peak && hunter.peak < peak:
			peak = hunter.peak
			for k := range h.c.best {
				h.c.best[k] = hunter.search.Offset(k)
			}
		}
	}
	if peak == h.c.peak && bound == h.c.bound {
		h.doubled++
		return
	}
	h.progress(peak, bound)
}
