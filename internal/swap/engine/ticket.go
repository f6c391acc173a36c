package engine

import (
	"fmt"

	"gm/internal/cuda"
)

// Ticket names memory that was copied out. It is more than 0.
type Ticket int64

// ticket is what a Ticket stands for. A row is used again under another name.
type ticket struct {
	name   Ticket // 0: the row is unused
	slot   int32
	size   int64 // bytes
	out    int64 // which of the copies out it is
	in     int64 // which of the copies in is its last one; 0: none yet
	left   cuda.Event
	ready  cuda.Event
	copied bool  // the copy out has passed
	uses   int64 // of the row
}

// A name is the row of a ticket, counted from 1, in its lower half, and how often the row was used before above.
const (
	rowBits  = 32
	usesMask = 1<<(63-rowBits) - 1
)

func (t Ticket) row() int64 { return int64(t)&(1<<rowBits-1) - 1 }

// find returns what a name stands for.
func (e *Engine) find(name Ticket) (*ticket, error) {
	if e.closed {
		return nil, ErrClosed
	}
	if row := name.row(); row >= 0 && row < int64(len(e.tickets)) && e.tickets[row].name == name {
		return &e.tickets[row], nil
	}
	return nil, fmt.Errorf("%w: %d", ErrTicket, name)
}

// newTicket returns an unused row, with its name.
func (e *Engine) newTicket() *ticket {
	if len(e.unused) == 0 {
		e.tickets = append(e.tickets, ticket{})
		e.unused = append(e.unused, int32(len(e.tickets)-1))
	}
	last := len(e.unused) - 1
	row := e.unused[last]
	e.unused = e.unused[:last]
	t := &e.tickets[row]
	t.name = Ticket(t.uses<<rowBits | (int64(row) + 1))
	return t
}

// Out copies n bytes at from to the host, behind the work that stream s holds now. The memory may be overwritten, and freed, behind Left.
// A *FullError says that the host has no room; cuda.ErrCapturing that s is captured.
func (e *Engine) Out(from cuda.Ptr, n int64, s cuda.Stream) (Ticket, error) {
	switch {
	case e.closed:
		return 0, ErrClosed
	case from == 0:
		return 0, ErrNone
	case n <= 0:
		return 0, fmt.Errorf("%w: %d bytes", ErrSize, n)
	}
	id, err := e.reserve(n)
	if err != nil {
		return 0, err
	}
	// What of the slot is still being copied in, for a ticket that was dropped, must not be overwritten before.
	var before readers
	if reader := e.arena.slots[id].reader; reader > e.out.behind {
		before = e.readers.until(reader)
	}
	t := cuda.Transfer{After: s, Device: from}
	if len(before) > 0 {
		t.Wait = before[len(before)-1].done
	}
	left, err := e.copy(&e.out, t, id, n)
	if err != nil {
		e.arena.give(id, 0)
		return 0, fmt.Errorf("copy %d bytes out: %w", n, err)
	}
	e.passReaders(before)
	k := e.newTicket()
	k.slot, k.size, k.out, k.left = id, n, e.out.count, left
	e.held += n
	e.peak = max(e.peak, e.held)
	return k.name, nil
}

// passReaders notes that copies out come behind the first readers from now on.
func (e *Engine) passReaders(before readers) {
	if len(before) == 0 {
		return
	}
	e.out.behind = before[len(before)-1].copy
	for _, r := range before {
		e.destroy(r.done)
	}
	e.readers = e.readers[:copy(e.readers, e.readers[len(before):])]
}

// copy queues a copy between a slot and the device. It returns an event behind it.
func (e *Engine) copy(l *lane, t cuda.Transfer, slot int32, n int64) (cuda.Event, error) {
	at := e.arena.slots[slot].at
	t.Lane, t.Timed = l.stream, e.timed
	t.Host = e.memory.Bytes()[at : at+n]
	t.First, t.Piece = e.chunk-at%e.chunk, e.chunk
	done, took, err := e.dev.Transfer(t)
	if err != nil {
		return 0, err
	}
	l.count++
	l.bytes += n
	if e.timed {
		l.note(took)
		l.collect(e.dev, collectAtOnce)
	}
	return done, nil
}

// Left has stream s wait for the copy out, so that its work from now on may overwrite the memory that was copied.
func (e *Engine) Left(name Ticket, s cuda.Stream) error {
	t, err := e.find(name)
	if err != nil || t.left == 0 { // it was loaded
		return err
	}
	if err := e.dev.Follow(s, t.left); err != nil {
		return fmt.Errorf("wait for a copy out: %w", err)
	}
	return nil
}

// In copies what a ticket holds to the memory at to, behind the work that stream s holds now. It may be read behind Ready. The ticket
// holds it still.
func (e *Engine) In(name Ticket, to cuda.Ptr, s cuda.Stream) error {
	t, err := e.find(name)
	if err != nil {
		return err
	}
	if to == 0 {
		return ErrNone
	}
	transfer := cuda.Transfer{In: true, After: s, Device: to}
	if t.out > e.in.behind {
		transfer.Wait = t.left
	}
	ready, err := e.copy(&e.in, transfer, t.slot, t.size)
	if err != nil {
		return fmt.Errorf("copy %d bytes in: %w", t.size, err)
	}
	e.in.behind = max(e.in.behind, t.out)
	if t.in > 0 {
		e.destroy(t.ready)
	}
	t.in, t.ready = e.in.count, ready
	return nil
}

// Ready has stream s wait for the last copy in of a ticket, so that its work from now on may read what was copied.
func (e *Engine) Ready(name Ticket, s cuda.Stream) error {
	t, err := e.find(name)
	if err != nil {
		return err
	}
	if t.in == 0 {
		return fmt.Errorf("%w of ticket %d", ErrNotIn, name)
	}
	if err := e.dev.Follow(s, t.ready); err != nil {
		return fmt.Errorf("wait for a copy in: %w", err)
	}
	return nil
}

// Copied says whether the copy out has passed.
func (e *Engine) Copied(name Ticket) (bool, error) {
	t, err := e.find(name)
	if err != nil {
		return false, err
	}
	if !t.copied {
		if t.copied, err = e.dev.EventQuery(t.left); err != nil {
			return false, fmt.Errorf("ask for a copy out: %w", err)
		}
	}
	return t.copied, nil
}

// Drop ends a ticket. Its copies go on. Its place on the host is free for the next copy out.
func (e *Engine) Drop(name Ticket) error {
	t, err := e.find(name)
	if err != nil {
		return err
	}
	e.arena.give(t.slot, t.in)
	if t.in > e.out.behind {
		e.readers.add(reader{t.in, t.ready})
		t.in = 0
	}
	e.forget(t)
	return nil
}

// forget ends the life of a ticket.
func (e *Engine) forget(t *ticket) {
	if t.name == 0 {
		return
	}
	e.destroy(t.left)
	if t.in > 0 {
		e.destroy(t.ready)
	}
	e.held -= t.size
	e.unused = append(e.unused, int32(t.name.row()))
	*t = ticket{uses: (t.uses + 1) & usesMask}
}

// destroy destroys an event. It is lost where the driver fails to.
func (e *Engine) destroy(event cuda.Event) { _ = e.dev.EventDestroy(event) }
