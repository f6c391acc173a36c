package dsa

import (
	"context"
	"sync"
	"sync/atomic"
)

// race tries one method a turn on an instance, as many at a time as there are workers. The winner is that of the
// lowest peak, and of those the one of the earliest turn, where all peaks up to the goal count as equal. A turn is
// given up only when it cannot win, so the winner does not depend on which turn ends first.
type race struct {
	ctx   context.Context
	in    *instance
	goal  int64 // units
	turns int
	next  atomic.Int64         // the first turn that no worker has taken
	lead  atomic.Pointer[lead] // nil until a layout is found
	mu    sync.Mutex           // held to change lead and best
	best  []int64              // the offsets that belong to lead
}

// lead is the best result so far.
type lead struct {
	peak int64 // units
	turn int
}

func newRace(ctx context.Context, in *instance, goal int64, turns int) *race {
	return &race{ctx: ctx, in: in, goal: goal, turns: turns}
}

// run returns the winner, whose offsets are in best; ok is false when ctx was done before there was one.
func (r *race) run(at func(turn int) member, workers []workspace) (winner lead, ok bool) {
	r.take(at, &workers[0], 1) // the first turn wins more often than not: it is not worth waking the others
	var others sync.WaitGroup
	for i := range workers[1:] {
		if r.decided(int(r.next.Load())) {
			break
		}
		others.Go(func() { r.take(at, &workers[1+i], r.turns) })
	}
	r.take(at, &workers[0], r.turns)
	others.Wait()
	if r.lead.Load() == nil {
		return lead{}, false
	}
	return *r.lead.Load(), true
}

// take runs up to so many turns, until they are used up or decided.
func (r *race) take(at func(turn int) member, w *workspace, turns int) {
	for range turns {
		turn := int(r.next.Add(1)) - 1
		if turn >= r.turns || r.decided(turn) {
			return
		}
		w.out = resize(w.out, r.in.len())
		stop := func(peak int64) bool { return r.decided(turn) || !r.leads(peak, turn) }
		if peak, ok := at(turn).method.layout(r.in, w, stop, w.out); ok {
			r.offer(peak, turn, w)
		}
	}
}

// decided says whether a turn cannot win any more, whatever its peak.
func (r *race) decided(turn int) bool {
	l := r.lead.Load()
	return r.ctx.Err() != nil || l != nil && l.turn < turn && l.peak <= r.goal
}

// leads says whether a peak reached in a turn would win against the best so far.
func (r *race) leads(peak int64, turn int) bool {
	l := r.lead.Load()
	if l == nil {
		return true
	}
	mine, theirs := max(peak, r.goal), max(l.peak, r.goal)
	return mine < theirs || mine == theirs && turn < l.turn
}

// offer makes the layout in w the best if it is, and gives w the memory of the former.
func (r *race) offer(peak int64, turn int, w *workspace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads(peak, turn) {
		r.lead.Store(&lead{peak, turn})
		r.best, w.out = w.out, r.best
	}
}
