package engine

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/swap/host"
)

// reserve returns a slot of n bytes that are pinned. That takes long only where the memory was never used.
func (e *Engine) reserve(n int64) (int32, error) {
	id := e.arena.alloc(n)
	if id == none {
		return none, e.full(n)
	}
	s := &e.arena.slots[id]
	err := e.pin(s.at + s.size)
	if errors.Is(err, ErrAllowance) && e.allowance.lends() {
		e.collectReturned()
		e.releaseIdle()
		if err = e.pin(s.at + s.size); errors.Is(err, ErrAllowance) { // until more is returned, here or on another GPU
			e.arena.give(id, 0)
			return none, e.full(n)
		}
	}
	if err != nil {
		e.arena.give(id, 0)
		e.arena.shrink(e.pinned)
		err = errors.Join(err, e.ahead.release(e.memory.Bytes(), e.pinned))
		e.refund(e.pinned)
		e.log(fmt.Sprintf("%d bytes of host memory are pinned, and no more can be: %v", e.pinned, err))
		return none, e.full(n)
	}
	return id, nil
}

// Grow pins one more chunk ahead of need, unless all of the budget is pinned. It says whether it did.
func (e *Engine) Grow() (bool, error) {
	if e.closed {
		return false, ErrClosed
	}
	if e.pinned >= e.arena.size {
		return false, nil
	}
	return true, e.pin(e.pinned + 1)
}

func (e *Engine) full(n int64) error {
	return &FullError{Asked: n, Live: e.held, Arena: e.arena.size, Largest: e.arena.largest()}
}

// pin pins memory up to an end, in whole chunks.
func (e *Engine) pin(end int64) error {
	for e.pinned < end {
		began := time.Now()
		part := e.chunkAt(e.pinned)
		if err := e.charge(e.pinned + int64(len(part))); err != nil {
			return err
		}
		if err := e.pinPart(part); err != nil {
			return err
		}
		e.pinned += int64(len(part))
		e.registrations++
		e.pinning += time.Since(began)
	}
	return nil
}

// charge has the allowance count memory up to an end, unless it does.
func (e *Engine) charge(end int64) error {
	if end <= e.charged {
		return nil
	}
	if !e.allowance.take(end - e.charged) {
		return ErrAllowance
	}
	e.charged = end
	return nil
}

// refund gives back what is counted behind an end.
func (e *Engine) refund(end int64) {
	e.allowance.give(e.charged - end)
	e.charged = end
}

// chunkAt returns the chunk that begins at a place; the last one may be smaller.
func (e *Engine) chunkAt(at int64) []byte {
	all := e.memory.Bytes()
	return all[at:min(at+e.chunk, int64(len(all)))]
}

func (e *Engine) pinPart(part []byte) error {
	err := host.Touch(part)
	if err == nil {
		err = e.dev.HostRegister(part)
	}
	if err != nil {
		return errors.Join(err, host.Release(part))
	}
	return nil
}

// unpin unpins all memory.
func (e *Engine) unpin() (errs error) {
	for at := int64(0); at < e.pinned; at += e.chunk {
		errs = errors.Join(errs, e.dev.HostUnregister(e.chunkAt(at)))
	}
	e.refund(0)
	return errs
}
