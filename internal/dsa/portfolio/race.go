package portfolio

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gm/internal/dsa/crew"
	"gm/internal/dsa/heuristic"
	"gm/internal/dsa/sections"
)

// race tries one method per turn on an instance, as many at a time as there are workers. The lowest score wins, and among equal scores
// the earliest turn; all scores up to the goal count as equal. A turn is abandoned only when it cannot win, so the winner
// does not depend on which turn ends first.
type race struct {
	ctx   context.Context
	in    *sections.Instance
	hard  *sections.Instance   // the part of in on which most methods fail; nil when in is small
	goal  int64                // units
	late  bool                 // the first turn is finished even when ctx is cancelled
	turns int                  // in total
	next  atomic.Int64         // the first turn that no worker has taken
	lead  atomic.Pointer[lead] // nil until a layout is found
	most  int64                // the cost limit of every turn but the first, in nodes of the index
	cost  int64                // of a turn; 0 when it is not known yet
	mu    sync.Mutex           // held to change lead and best
	best  []int64              // the offsets of lead

	progress func(l lead) // called for every better result
}

// worker is the memory of one goroutine.
type worker struct {
	heuristic.Workspace
	out []int64 // units: the offsets of the layout that is being made
}

// lead is the best result so far.
type lead struct {
	turn  int
	peak  int64 // units
	score int64 // units: the peak, or the peak on the hard part alone if that is higher
}

// run tries the methods that at returns for the turns, and returns the winner, whose offsets are then in best. If there is a lead, it
// continues after its turn. Otherwise the first turn has no limit, and its cost is the estimate for the others: there are up
// to more of them, and together they cost up to work. A first turn without a cost leaves the estimate for later runs to the turn after it.
// ok is false when ctx was done before there was a winner.
func (r *race) run(at func(turn int) Member, more int, work int64, workers []worker) (winner lead, ok bool) {
	blind := false // whether the first turn tells nothing of the cost of others
	if l := r.lead.Load(); l != nil {
		r.next.Store(int64(l.turn) + 1)
		r.turns = l.turn + 1
	} else {
		r.turns = 1
		visits := r.alone(at, workers[:1])
		r.cost, blind = max(visits, leastCost*int64(r.in.Len())), visits == 0
	}
	if more > 0 && !r.decided(r.turns) {
		cost := r.cost
		if r.hard = r.in.Hardest(); r.hard != nil {
			cost = 1 + cost*int64(r.hard.Len())/int64(r.in.Len())
		}
		turns := r.turns + int(min(int64(more), work/cost))
		if blind && r.most < math.MaxInt64 {
			r.turns++
			r.cost = max(r.cost, r.alone(at, workers[:1]))
		}
		r.turns = max(r.turns, turns)
		r.take(at, workers)
	}
	if r.lead.Load() == nil {
		return lead{}, false
	}
	return *r.lead.Load(), true
}

// alone runs turns on one worker and returns how many nodes of the index they visited. Best fit has no index and visits none.
func (r *race) alone(at func(turn int) Member, worker []worker) int64 {
	before := worker[0].Work()
	r.take(at, worker)
	return worker[0].Work() - before
}

// take runs turns on all workers until they are used up or decided.
func (r *race) take(at func(turn int) Member, workers []worker) {
	var wait crew.Crew
	for i := range workers {
		wait.Go(func() {
			for turn := r.claim(); turn < r.turns && !r.decided(turn); turn = r.claim() {
				r.try(at(turn).Method, turn, &workers[i])
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

// leastCost is the least cost of a turn per buffer, in nodes of the index: not all methods use one.
const leastCost = 32

// try runs a method, first on the hard part alone, where most fail sooner.
func (r *race) try(m heuristic.Method, turn int, w *worker) {
	w.out = slices.Grow(w.out[:0], r.in.Len())[:r.in.Len()]
	began := w.Work()
	stop := func(peak int64) bool {
		return r.decided(turn) || !r.leads(peak, turn) || turn > 0 && w.Work()-began > r.most
	}
	score := int64(0)
	if r.hard != nil && turn > 0 {
		peak, ok := m.Layout(r.hard, &w.Workspace, stop, w.out[:r.hard.Len()])
		if !ok {
			return
		}
		score = peak
	}
	if peak, ok := m.Layout(r.in, &w.Workspace, stop, w.out); ok {
		r.offer(lead{turn: turn, peak: peak, score: max(peak, score)}, w)
	}
}

// decided reports whether a turn can no longer win, whatever its score.
func (r *race) decided(turn int) bool {
	l := r.lead.Load()
	if l == nil && (r.late || errors.Is(r.ctx.Err(), context.DeadlineExceeded)) {
		return false // a late layout is better than none
	}
	return r.ctx.Err() != nil || l != nil && l.turn < turn && l.score <= r.goal
}

// leads reports whether a score in a turn would win against the best so far.
func (r *race) leads(score int64, turn int) bool {
	l := r.lead.Load()
	if l == nil {
		return true
	}
	mine, theirs := max(score, r.goal), max(l.score, r.goal)
	return mine < theirs || mine == theirs && turn < l.turn
}

// offer makes the layout in w the best if it leads, and swaps its memory with that of the former best.
func (r *race) offer(l lead, w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads(l.score, l.turn) {
		r.lead.Store(&l)
		r.best, w.out = w.out, r.best
		r.progress(l)
	}
}
