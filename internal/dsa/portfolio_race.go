package dsa

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// race tries one method a turn on an instance, as many at a time as there are workers. The winner is that of the
// lowest score, and of those the one of the earliest turn, where all scores up to the goal count as equal. A turn is
// given up only when it cannot win, so the winner does not depend on which turn ends first.
type race struct {
	ctx   context.Context
	in    *instance
	hard  *instance            // the part of in that most methods fail on; nil when in is small
	goal  int64                // units
	late  bool                 // the first turn is finished even when ctx is cancelled
	turns int                  // how many there are
	next  atomic.Int64         // the first turn that no worker has taken
	lead  atomic.Pointer[lead] // nil until a layout is found
	most  int64                // that a turn but the first may cost, in nodes of the index
	cost  int64                // of a turn; 0 when it is not known yet
	mu    sync.Mutex           // held to change lead and best
	best  []int64              // the offsets that belong to lead

	progress func(l lead) // told of every better result
}

// lead is the best result so far.
type lead struct {
	turn  int
	peak  int64 // units
	score int64 // units: the peak, or that on the hard part alone when it was higher
}

// run tries the methods that at gives for the turns, and returns the winner, whose offsets are then in best. It goes on
// after the turn of the lead when there is one; else the first turn has no bound, and says what those after it
// cost. Those may do so much work together, and are at most so many. ok is false when ctx was done before there was a winner.
func (r *race) run(at func(turn int) member, more int, work int64, workers []workspace) (winner lead, ok bool) {
	if l := r.lead.Load(); l != nil {
		r.next.Store(int64(l.turn) + 1)
		r.turns = l.turn + 1
	} else {
		r.turns = 1
		before := workers[0].work()
		r.take(at, workers[:1])
		r.cost = max(workers[0].work()-before, leastCost*int64(r.in.len()))
	}
	if more > 0 && !r.decided(r.turns) {
		cost := r.cost
		if r.hard = r.in.hardest(); r.hard != nil {
			cost = 1 + cost*int64(r.hard.len())/int64(r.in.len())
		}
		r.turns += int(min(int64(more), work/cost))
		r.take(at, workers)
	}
	if r.lead.Load() == nil {
		return lead{}, false
	}
	return *r.lead.Load(), true
}

// take runs turns on all workers until they are used up or decided.
func (r *race) take(at func(turn int) member, workers []workspace) {
	var wait crew
	for i := range workers {
		wait.Go(func() {
			for turn := r.claim(); turn < r.turns && !r.decided(turn); turn = r.claim() {
				r.try(at(turn).method, turn, &workers[i])
			}
		})
	}
	wait.Wait()
}

// claim returns the next turn that no worker has taken.
func (r *race) claim() int {
	for {
		turn := r.next.Load()
		if int(turn) >= r.turns {
			return r.turns
		}
		if r.next.CompareAndSwap(turn, turn+1) {
			return int(turn)
		}
	}
}

// leastCost is what a turn costs at least for each buffer, in nodes of the index: not all methods have one.
const leastCost = 32

// try lets a method have its turn: first on the hard part alone, where most fail sooner.
func (r *race) try(m method, turn int, w *workspace) {
	w.out = resize(w.out, r.in.len())
	began := w.work()
	stop := func(peak int64) bool {
		return r.decided(turn) || !r.leads(peak, turn) || turn > 0 && w.work()-began > r.most
	}
	score := int64(0)
	if r.hard != nil && turn > 0 {
		peak, ok := m.layout(r.hard, w, stop, w.out[:r.hard.len()])
		if !ok {
			return
		}
		score = peak
	}
	if peak, ok := m.layout(r.in, w, stop, w.out); ok {
		r.offer(lead{turn: turn, peak: peak, score: max(peak, score)}, w)
	}
}

// decided says whether a turn cannot win any more, whatever its score.
func (r *race) decided(turn int) bool {
	l := r.lead.Load()
	if l == nil && (r.late || errors.Is(r.ctx.Err(), context.DeadlineExceeded)) {
		return false // a late layout is better than none
	}
	return r.ctx.Err() != nil || l != nil && l.turn < turn && l.score <= r.goal
}

// leads says whether a score in a turn would win against the best so far.
func (r *race) leads(score int64, turn int) bool {
	l := r.lead.Load()
	if l == nil {
		return true
	}
	mine, theirs := max(score, r.goal), max(l.score, r.goal)
	return mine < theirs || mine == theirs && turn < l.turn
}

// offer makes the layout in w the best if it is, and gives w the memory of the former.
func (r *race) offer(l lead, w *workspace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads(l.score, l.turn) {
		r.lead.Store(&l)
		r.best, w.out = w.out, r.best
		r.progress(l)
	}
}
