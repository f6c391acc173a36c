package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/host"
)

// leastRegion is how much memory of the host is pinned at a time for what is borrowed, in bytes, or a sixteenth of the budget where that is less.
const leastRegion = 64 << 20

// defaultPatience is how long a request waits at most for what was returned, and pollEvery how often it looks.
const (
	defaultPatience = 5 * time.Second
	pollEvery       = 100 * time.Microsecond
)

// regionAlign is what the sizes of regions are multiples of, in bytes: a huge page.
const regionAlign = 2 << 20

// region is memory of the host that is pinned as one piece, so that no copy of a part of it is of two pieces, which the driver refuses.
type region struct {
	memory *host.Memory
	arena  arena
	slots  int // in use
}

func (r *region) address() cuda.Ptr { return cuda.Ptr(r.memory.Address()) }

func (r *region) has(p cuda.Ptr) bool {
	return p >= r.address() && p < r.address()+cuda.Ptr(r.arena.size)
}

// loan is a part of a region that the device uses in place, over the link.
type loan struct {
	region  *region
	slot    int32
	size    int64         // bytes
	streams []cuda.Stream // that use it, the first one first
	passed  []cuda.Event  // once it has been returned: behind what these streams had to do then, as far as that is known
}

// borrowed is what the device has of the host.
type borrowed struct {
	regions    []*region
	loans      map[cuda.Ptr]*loan
	returned   []*loan // that streams may still use
	live, peak int64   // bytes of loans
	count      int64   // of loans that were made
}

// Borrow returns n bytes of the host that kernels read and write in place, no faster than the link. Stream s uses them; others are to be told of
// by Use. The allowance counts them, and tickets have no part of them. A *FullError says that there are none.
func (e *Engine) Borrow(n int64, s cuda.Stream) (cuda.Ptr, error) {
	switch {
	case e.closed:
		return 0, ErrClosed
	case n <= 0:
		return 0, fmt.Errorf("%w: %d bytes", ErrSize, n)
	case !e.inPlace:
		return 0, ErrInPlace
	}
	if l := e.takeOver(n, s); l != nil {
		return e.enter(l, n), nil
	}
	e.collectReturned()
	l := e.fit(n)
	if l == nil {
		r, err := e.addRegion(n)
		if err == nil {
			l = r.take(n)
		} else if l = e.awaitReturned(n); l == nil {
			return 0, errors.Join(&FullError{Asked: n, Live: e.borrowed.live, Arena: e.budget}, err)
		}
	}
	l.streams = append(l.streams[:0], s)
	return e.enter(l, n), nil
}

// Borrowed returns where what was borrowed begins, and its size in bytes, or false for other memory.
func (e *Engine) Borrowed(p cuda.Ptr) (begin cuda.Ptr, size int64, ok bool) {
	if l := e.borrowed.loans[p]; l != nil {
		return p, l.size, true
	}
	if !slices.ContainsFunc(e.borrowed.regions, func(r *region) bool { return r.has(p) }) {
		return 0, 0, false
	}
	for begin, l := range e.borrowed.loans {
		if p > begin && p < begin+cuda.Ptr(l.size) {
			return begin, l.size, true
		}
	}
	return 0, 0, false
}

// Use notes that stream s uses what was borrowed at p. It returns false for other memory.
func (e *Engine) Use(p cuda.Ptr, s cuda.Stream) bool {
	begin, _, ok := e.Borrowed(p)
	if !ok {
		return false
	}
	if l := e.borrowed.loans[begin]; !slices.Contains(l.streams, s) {
		l.streams = append(l.streams, s)
	}
	return true
}

// Return ends a loan. What its streams have been given to do so far may still use it. It returns false for other memory.
func (e *Engine) Return(p cuda.Ptr) bool {
	b := &e.borrowed
	l := b.loans[p]
	if l == nil {
		return false
	}
	delete(b.loans, p)
	b.live -= l.size
	e.mark(l)
	b.returned = append(b.returned, l)
	return true
}

// enter begins a loan.
func (e *Engine) enter(l *loan, n int64) cuda.Ptr {
	b := &e.borrowed
	p := l.region.address() + cuda.Ptr(l.region.arena.slots[l.slot].at)
	l.size = n
	if b.loans == nil {
		b.loans = map[cuda.Ptr]*loan{}
	}
	b.loans[p] = l
	b.live += n
	b.peak = max(b.peak, b.live)
	b.count++
	return p
}

// takeOver returns a part that was returned and only stream s has used: what it does next comes behind that. Another stream may have got the handle
// of one that has ended, so it waits for what that had to do.
func (e *Engine) takeOver(n int64, s cuda.Stream) *loan {
	b := &e.borrowed
	for i, l := range b.returned {
		room := l.region.arena.slots[l.slot].size
		if room < n || room/2 > n || len(l.streams) != 1 || l.streams[0] != s || len(l.passed) != 1 || e.dev.Follow(s, l.passed[0]) != nil {
			continue
		}
		e.forgetMarks(l)
		b.returned = slices.Delete(b.returned, i, i+1)
		return l
	}
	return nil
}

// fit returns a free part of a region, nil if there is none.
func (e *Engine) fit(n int64) *loan {
	for _, r := range e.borrowed.regions {
		if l := r.take(n); l != nil {
			return l
		}
	}
	return nil
}

func (r *region) take(n int64) *loan {
	id := r.arena.alloc(n)
	if id == none {
		return nil
	}
	r.slots++
	return &loan{region: r, slot: id}
}

// mark notes what the streams of a loan that was returned have to do, as far as the driver lets it: one that is captured is asked later, and one that
// has ended is waited for with all others.
func (e *Engine) mark(l *loan) {
	for len(l.passed) < len(l.streams) {
		s := l.streams[len(l.passed)]
		capturing, err := e.dev.Capturing(s)
		if capturing {
			return
		}
		var done cuda.Event
		if err == nil {
			done, err = e.dev.EventRecord(s)
		}
		if err == nil {
			l.passed = append(l.passed, done)
		} else if e.dev.Synchronize() == nil {
			l.streams = slices.Delete(l.streams, len(l.passed), len(l.passed)+1)
		} else {
			return
		}
	}
}

func (e *Engine) forgetMarks(l *loan) {
	for _, done := range l.passed {
		e.destroy(done)
	}
	l.passed = l.passed[:0]
}

// collectReturned frees what was returned and no stream uses any more.
func (e *Engine) collectReturned() {
	b := &e.borrowed
	b.returned = slices.DeleteFunc(b.returned, func(l *loan) bool {
		e.mark(l)
		if len(l.passed) < len(l.streams) || !e.allPassed(l) {
			return false
		}
		e.forgetMarks(l)
		l.region.arena.give(l.slot, 0)
		l.region.slots--
		return true
	})
}

func (e *Engine) allPassed(l *loan) bool {
	for _, done := range l.passed {
		if passed, err := e.dev.EventQuery(done); err != nil || !passed {
			return false
		}
	}
	return true
}

// awaitReturned waits for a while until something that was returned leaves room for n bytes. It returns nil if nothing does. Whoever waits for the
// engine's lock meanwhile may be what the streams wait for.
func (e *Engine) awaitReturned(n int64) *loan {
	for end := time.Now().Add(e.patience); len(e.borrowed.returned) > 0 && time.Now().Before(end); time.Sleep(pollEvery) {
		e.collectReturned()
		if l := e.fit(n); l != nil {
			return l
		}
		if r, err := e.addRegion(n); err == nil { // in place of others that have become idle
			return r.take(n)
		}
	}
	return nil
}

// addRegion pins a region with room for n bytes. Regions that nobody uses are released first where other memory may not be pinned.
func (e *Engine) addRegion(n int64) (*region, error) {
	if n > e.budget {
		return nil, ErrAllowance
	}
	size := max(n, min(leastRegion, e.budget/16))
	size = (size + regionAlign - 1) / regionAlign * regionAlign
	if !e.allowance.lend(size) {
		e.releaseIdle()
		e.giveUpAhead()
		if !e.allowance.lend(size) {
			return nil, ErrAllowance
		}
	}
	r, err := e.pinRegion(size)
	if err != nil {
		e.allowance.repay(size)
		return nil, err
	}
	e.borrowed.regions = append(e.borrowed.regions, r)
	return r, nil
}

// giveUpAhead gives back what was taken ahead for tickets and is not pinned yet.
func (e *Engine) giveUpAhead() {
	if e.ahead.release(e.memory.Bytes(), e.pinned) == nil {
		e.refund(e.pinned)
	}
}

func (e *Engine) pinRegion(size int64) (*region, error) {
	memory, err := host.Map(size, e.memory.Node())
	if err != nil {
		return nil, err
	}
	if err := e.pinPart(memory.Bytes()); err != nil {
		return nil, errors.Join(err, memory.Unmap())
	}
	return &region{memory: memory, arena: newArena(size)}, nil
}

// releaseIdle releases the regions of which nothing is in use.
func (e *Engine) releaseIdle() {
	b := &e.borrowed
	b.regions = slices.DeleteFunc(b.regions, func(r *region) bool {
		if r.slots > 0 || e.dev.HostUnregister(r.memory.Bytes()) != nil {
			return false
		}
		e.allowance.repay(r.arena.size)
		_ = r.memory.Unmap() // its pages are pinned no more, and its addresses are of no use
		return true
	})
}

// closeBorrowed waits for what was returned, and releases the regions. One that the program still uses stays as it is.
func (e *Engine) closeBorrowed() {
	for _, l := range e.borrowed.returned {
		e.mark(l)
	}
	if len(e.borrowed.returned) > 0 && e.dev.Synchronize() == nil {
		e.collectReturned()
	}
	e.releaseIdle()
}
