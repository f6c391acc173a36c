package portfolio

import (
	"context"
	"math"
	"math/bits"
	"sync/atomic"

	"gm/internal/dsa/crew"
	"gm/internal/dsa/exact"
	"gm/internal/dsa/sections"
)

// restarts improves the layout of a component by exact search with restarts. Which order of search finds a layout soon differs between
// instances by factors of a thousand, and so does the height at which one is easy to find. So several searchers, each with
// an order of its own, try heights between the bound and the best peak, in rounds. Most rounds are short, because a new order is
// more likely to succeed than more time for an old one; few are long. A search that ends without a layout proves that none exists at
// its height, and raises the bound.
//
// The outcome is the same for any number of workers unless ctx ends it: what a searcher finds in a round depends on earlier rounds
// alone. A searcher that was stopped because another one succeeded counts as not having run: it drops what it learned, and its work
// is not counted.
type restarts struct {
	ctx      context.Context
	c        *component
	decide   bool // whether nothing lower than the goal is wanted
	seed     uint64
	progress func(peak, bound int64) // called for every better peak or bound, in units

	goal      int64 // units
	searchers []searcher
	offsets   byOffset
	round     int
	nodes     int64 // searched in total
	work      int64 // the cost of that, in the unit of [exact.Search.Work]
}

// searcher is one order of search, and the outcome of its last attempt.
type searcher struct {
	search  *exact.Search // nil when it has learned nothing
	attempt exact.Attempt
	outcome exact.Outcome
	peak    int64 // units, of the layout that was found
}

// firstKeys rank buffers in the first rounds, each with every preference of corners.
var firstKeys = [...]sections.Key{"TZ", "TWA", "UTV", "V", "TAW"}

// heights are tried in turn. 0 stands for the bound, 1 for just below the best peak.
var heights = [...]float64{0, 0.9, 0.5, 0.25, 0.75}

const (
	shortRounds  = 3 // afterwards three of four searchers use random keys
	fewSearchers = 3
	fewLives     = 1 << 17 // components with as many lives (see component.lives) have few searchers
)

// searcherCount returns the number of searchers: fewer in a large component, where each takes long.
func searcherCount(lives int64) int {
	return max(fewSearchers, min(len(firstKeys)*int(exact.Preferences), int(fewSearchers*fewLives/max(lives, 1))))
}

// step runs one round on all workers. A layout that fits the goal is good enough.
func (r *restarts) step(goal int64, workers []worker) {
	r.goal = goal
	r.attemptAll(workers)
	r.gather()
	r.round++
}

// forget frees the memory of the searchers.
func (r *restarts) forget() {
	for i := range r.searchers {
		r.searchers[i].search = nil
	}
	r.offsets.search = nil
}

// done reports whether nothing is left to find, or no time.
func (r *restarts) done() bool {
	return r.c.peak <= max(r.goal, r.c.bound) || r.decide && r.c.bound > r.goal || r.ctx.Err() != nil
}

// attemptAll lets all searchers make an attempt.
func (r *restarts) attemptAll(workers []worker) {
	var wait crew.Crew
	var next atomic.Int64
	found := make([]atomic.Int64, 1+len(r.searchers)) // the peak by offset and of each searcher, searching or noPeak
	for i := range workers {
		wait.Go(func() {
			for turn := next.Add(1) - 1; turn < int64(len(found)); turn = next.Add(1) - 1 {
				if turn == 0 {
					found[0].Store(r.tryByOffset())
				} else {
					r.try(int(turn-1), found, &workers[i])
				}
			}
		})
	}
	wait.Wait()
}

// Values in place of a peak.
const (
	searching = 0
	noPeak    = -1
)

// try lets one searcher make its attempt. The attempt is stopped once an earlier searcher has found a layout as low as it could find.
func (r *restarts) try(n int, found []atomic.Int64, w *worker) {
	searcher := &r.searchers[n]
	if r.ctx.Err() != nil {
		searcher.outcome = exact.Stopped
		return
	}
	if searcher.search == nil {
		searcher.search = exact.New(exact.Instance{Lo: r.c.in.Lo, Hi: r.c.in.Hi, Size: r.c.in.Size, Sections: r.c.in.Sections()})
	}
	r.prepare(n, w)
	searcher.attempt.Stop = func() bool { return r.ctx.Err() != nil || r.beaten(n, found) }
	if searcher.outcome = searcher.search.Try(searcher.attempt); searcher.outcome != exact.Fits {
		found[1+n].Store(noPeak)
		return
	}
	searcher.peak = 0
	for k, size := range r.c.in.Size {
		searcher.peak = max(searcher.peak, searcher.search.Offset(k)+size)
	}
	found[1+n].Store(searcher.peak)
}

// beaten reports whether gather is certain to skip searcher n, whatever the others still find. Of a peak that gather may itself skip, only
// the capacity at which it was found is known.
func (r *restarts) beaten(n int, found []atomic.Int64) bool {
	capacity := r.searchers[n].attempt.Capacity
	least, sure := int64(math.MaxInt64), true
	switch peak := found[0].Load(); peak {
	case searching:
		sure = false
	case noPeak:
	default:
		least = peak
	}
	for i := range n {
		peak := found[1+i].Load()
		switch {
		case peak == searching:
			sure = false
		case peak == noPeak:
		case r.searchers[i].attempt.Capacity <= capacity:
			return true
		case sure && r.searchers[i].attempt.Capacity < least:
			least = peak
		}
	}
	return least <= capacity
}

// prepare sets the attempt of a searcher for this round.
func (r *restarts) prepare(n int, w *worker) {
	a := &r.searchers[n].attempt
	a.Capacity = r.height(n)
	a.Weighted = r.decide
	a.Nodes = int64(r.c.in.Len()) * patience(r.round, r.decide)
	a.Prefer, a.Level = exact.Preference(n%int(exact.Preferences)), n%2 == 1
	if r.round < shortRounds || n%4 == 0 {
		a.Rank = append(a.Rank[:0], w.Ranking.ByKey(r.c.in, firstKeys[n/int(exact.Preferences)])...)
	} else {
		a.Rank = append(a.Rank[:0], w.Ranking.ByMix(r.c.in, r.seed, uint64(r.round*len(r.searchers)+n))...)
	}
}

// height returns the capacity of an attempt of this round.
func (r *restarts) height(n int) int64 {
	height := max(r.c.bound, r.goal)
	if !r.decide {
		share := heights[(r.round+n)%len(heights)]
		height += int64(math.Round(share * float64(r.c.peak-1-height)))
	}
	return height
}

// patience returns how many nodes per buffer an attempt of a round may search. After the first rounds it follows the sequence of Luby,
// Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993). Attempts at one height, which learn from each other, are shorter.
func patience(round int, decide bool) int64 {
	switch {
	case round < shortRounds:
		return 2 << round
	case decide:
		return 8 * luby(round-shortRounds+1)
	}
	return 16 * luby(round-shortRounds+1)
}

// luby returns element i, counted from 1, of the sequence 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, ...
func luby(i int) int64 {
	k := bits.Len(uint(i))
	if i == 1<<k-1 {
		return 1 << (k - 1)
	}
	return luby(i - 1<<(k-1) + 1)
}

// gather takes over what the searchers found. It skips those whose height is not below the peak of an earlier one: they may have been
// stopped at any point.
func (r *restarts) gather() {
	peak, bound := r.offsets.gather(r.c)
	for i := range r.searchers {
		searcher := &r.searchers[i]
		if searcher.search == nil {
			continue // there was no time
		}
		if searcher.attempt.Capacity >= peak {
			searcher.search.Forget()
			continue
		}
		r.nodes += searcher.search.Nodes()
		r.work += searcher.search.Work()
		switch searcher.outcome {
		case exact.Fails:
			bound = max(bound, searcher.attempt.Capacity+1)
		case exact.Fits:
			peak = searcher.peak
			for k := range r.c.best {
				r.c.best[k] = searcher.search.Offset(k)
			}
		}
	}
	if peak < r.c.peak || bound > r.c.bound {
		r.progress(peak, bound)
	}
}
