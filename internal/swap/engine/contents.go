package engine

import "fmt"

// Bytes returns what a ticket holds, on the host, until Drop. The copy out must have passed.
func (e *Engine) Bytes(name Ticket) ([]byte, error) {
	t, err := e.find(name)
	if err != nil {
		return nil, err
	}
	if passed, err := e.Copied(name); err != nil {
		return nil, err
	} else if !passed {
		return nil, fmt.Errorf("read ticket %d: its copy out goes on", name)
	}
	at := e.arena.slots[t.slot].at
	return e.memory.Bytes()[at : at+t.size], nil
}

// Load makes a ticket of n bytes that fill writes, as if they had been copied out. Unlike all else it waits: for the copies that were queued
// before, which may use the same memory of the host.
func (e *Engine) Load(n int64, fill func(to []byte) error) (Ticket, error) {
	switch {
	case e.closed:
		return 0, ErrClosed
	case n <= 0:
		return 0, fmt.Errorf("%w: %d bytes", ErrSize, n)
	}
	id, err := e.reserve(n)
	if err != nil {
		return 0, err
	}
	for _, l := range [2]*lane{&e.out, &e.in} {
		if err == nil {
			err = e.dev.StreamSynchronize(l.stream)
		}
	}
	if err == nil {
		at := e.arena.slots[id].at
		err = fill(e.memory.Bytes()[at : at+n])
	}
	if err != nil {
		e.arena.give(id, 0)
		return 0, fmt.Errorf("load %d bytes: %w", n, err)
	}
	k := e.newTicket()
	k.slot, k.size, k.copied = id, n, true
	e.held += n
	e.peak = max(e.peak, e.held)
	return k.name, nil
}
