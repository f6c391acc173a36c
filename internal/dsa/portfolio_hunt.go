package dsa

import (
	"context"
	"math"
	"math/bits"
	"sync/atomic"

	"gm/internal/dsa/exact"
)

// hunt looks for ever lower layouts of an instance by exact search. Which order of search finds one soon differs from
// instance to instance, by factors of a thousand, and so does which height is easy: many hunters search in orders of
// their own, at heights between the bound and the best peak, in rounds: most are short, as a new order is more likely to
// find something than more of the same, and few are long. A search that ends without a layout proves that there is none: the bound rises.
//
// What a hunter finds in a round depends on the rounds before and on nothing else, so the outcome is the same for any
// number of workers, as long as ctx does not end it. One that is stopped by what others found has taken part in no round: it
// forgets what it learned, and its work does not count.
type hunt struct {
	ctx      context.Context
	c        *component
	decide   bool // whether nothing lower than the goal is wanted
	seed     uint64
	progress func(peak, bound int64) // told of every better peak or bound, in units

	goal    int64 // units
	hunters []hunter
	round   int
	nodes   int64 // looked at, in all
	work    int64 // what that took, in the unit of [exact.Search.Work]
}

// hunter is one order of search, and what came of its last attempt.
type hunter struct {
	search  *exact.Search // nil when it has learned nothing
	attempt exact.Attempt
	outcome exact.Outcome
	peak    int64 // units, of the layout that was found
}

// The first rounds go by these keys, each with every preference of corners.
var huntKeys = [...]key{"TZ", "TWA", "UTV", "V", "TAW"}

// huntShares are the heights that are tried, from the bound at 0 to just under the best peak at 1.
var huntShares = [...]float64{0, 0.9, 0.5, 0.25, 0.75}

const (
	firstRounds = 3 // after these three of four hunters go by random keys
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
	h.round++
}

// forget frees the memory of the hunters.
func (h *hunt) forget() {
	for i := range h.hunters {
		h.hunters[i].search = nil
	}
}

// done says whether there is nothing left to look for.
func (h *hunt) done() bool {
	return h.c.peak <= max(h.goal, h.c.bound) || h.decide && h.c.bound > h.goal || h.ctx.Err() != nil
}

// send lets all hunters make an attempt.
func (h *hunt) send(workers []workspace) {
	var wait crew
	var next atomic.Int64
	found := make([]atomic.Int64, len(h.hunters)) // the peak of each, or what follows
	for i := range workers {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(h.hunters)); n = next.Add(1) - 1 {
				h.try(int(n), found, &workers[i])
			}
		})
	}
	wait.Wait()
}

// What there may be in place of a peak.
const (
	searching = 0
	noPeak    = -1
)

// try lets one hunter make its attempt. It is of no use once those before it have found something as low as it may find.
func (h *hunt) try(n int, found []atomic.Int64, w *workspace) {
	hunter := &h.hunters[n]
	if h.ctx.Err() != nil {
		hunter.outcome = exact.Stopped
		return
	}
	if hunter.search == nil {
		hunter.search = exact.New(exact.Instance{Lo: h.c.in.lo, Hi: h.c.in.hi, Size: h.c.in.size, Sections: h.c.in.sections()})
	}
	h.prepare(n, w)
	hunter.attempt.Stop = func() bool { return h.ctx.Err() != nil || h.beaten(n, found) }
	if hunter.outcome = hunter.search.Try(hunter.attempt); hunter.outcome != exact.Fits {
		found[n].Store(noPeak)
		return
	}
	hunter.peak = 0
	for k, size := range h.c.in.size {
		hunter.peak = max(hunter.peak, hunter.search.Offset(k)+size)
	}
	found[n].Store(hunter.peak)
}

// beaten says whether gather is sure to pass over the nth hunter, whatever those that are still searching find. A peak that
// gather may pass over itself tells no more than the capacity at which it was found.
func (h *hunt) beaten(n int, found []atomic.Int64) bool {
	capacity := h.hunters[n].attempt.Capacity
	least, sure := int64(math.MaxInt64), true
	for i := range n {
		peak := found[i].Load()
		switch {
		case peak == searching:
			sure = false
		case peak == noPeak:
		case h.hunters[i].attempt.Capacity <= capacity:
			return true
		case sure && h.hunters[i].attempt.Capacity < least:
			least = peak
		}
	}
	return least <= capacity
}

// prepare says what a hunter is to look for in this round.
func (h *hunt) prepare(n int, w *workspace) {
	a := &h.hunters[n].attempt
	a.Capacity = max(h.c.bound, h.goal)
	if !h.decide {
		share := huntShares[(h.round+n)%len(huntShares)]
		a.Capacity += int64(math.Round(share * float64(h.c.peak-1-a.Capacity)))
	}
	a.Nodes = int64(h.c.in.len()) * patience(h.round)
	a.Prefer, a.Level = exact.Preference(n%int(exact.Preferences)), n%2 == 1
	if h.round < firstRounds || n%4 == 0 {
		a.Rank = append(a.Rank[:0], w.ranking.byKey(h.c.in, huntKeys[n/int(exact.Preferences)])...)
	} else {
		a.Rank = append(a.Rank[:0], w.ranking.byMix(h.c.in, h.seed, uint64(h.round*len(h.hunters)+n))...)
	}
}

// patience returns how many nodes an attempt of a round has for each buffer: after the first rounds, the sequence of Luby,
// Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993).
func patience(round int) int64 {
	if round < firstRounds {
		return 2 << round
	}
	return 16 * luby(round-firstRounds+1)
}

// luby returns the element i, from 1, of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, ...
func luby(i int) int64 {
	k := bits.Len(uint(i))
	if i == 1<<k-1 {
		return 1 << (k - 1)
	}
	return luby(i - 1<<(k-1) + 1)
}

// gather takes in what the hunters have found, but for those that looked no lower than others before them had found: these
// may have been stopped anywhere.
func (h *hunt) gather() {
	peak, bound := h.c.peak, h.c.bound
	for i := range h.hunters {
		hunter := &h.hunters[i]
		if hunter.search == nil {
			continue // there was no time
		}
		if hunter.attempt.Capacity >= peak {
			hunter.search.Forget()
			continue
		}
		h.nodes += hunter.search.Nodes()
		h.work += hunter.search.Work()
		switch hunter.outcome {
		case exact.Fails:
			bound = max(bound, hunter.attempt.Capacity+1)
		case exact.Fits:
			peak = hunter.peak
			for k := range h.c.best {
				h.c.best[k] = hunter.search.Offset(k)
			}
		}
	}
	if peak < h.c.peak || bound > h.c.bound {
		h.progress(peak, bound)
	}
}
