package engine

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/swap/host"
)

// DefaultChunk is how much memory of the host is pinned at a time, in bytes, and a sixteenth of the budget where that is less, so that other
// engines that have a part of it find some.
const (
	DefaultChunk = 256 << 20
	leastChunk   = 2 << 20
)

// Options are how an engine is to work.
type Options struct {
	Budget int64 // bytes of the host that it may pin
	Chunk  int64 // bytes that are pinned at a time, a multiple of host.Page(); 0 for DefaultChunk
	Node   int   // the NUMA node that they come from, negative for any
	Timed  bool  // measure how long the lanes are busy

	InPlace bool // the GPU uses pinned memory at the address that it has on the host, so that some may be borrowed

	Allowance *Allowance   // what it may pin together with other engines, nil for no such bound
	Log       func(string) // gets a line when not all of the budget can be pinned, unless it is nil
}

// Engine copies memory of one GPU out to the host and in again, each direction in a stream of its own. It is not safe for concurrent use.
//
// A ticket stands for memory that was copied out. Its life is Out, Left, then as often as it is wanted In and Ready, then Drop. Each of
// these takes the stream that uses the memory, and comes in its order: Out copies what the stream's work so far has written; behind Left
// the stream may write the memory that was copied, and give it back; In overwrites memory that the stream's work so far has done with;
// behind Ready the stream may read what was copied in.
type Engine struct {
	dev    Device
	memory *host.Memory
	chunk  int64
	budget int64 // bytes of the host that it may pin
	pinned int64 // bytes from the start of memory on

	allowance *Allowance
	charged   int64 // to the allowance: for what is pinned, and for pages that were taken ahead

	timed    bool
	inPlace  bool
	patience time.Duration // with what was borrowed and returned
	log      func(string)

	borrowed borrowed

	arena         arena
	ahead         ahead
	out, in       lane
	readers       readers
	tickets       []ticket
	unused        []int32 // rows of tickets
	held          int64   // bytes of tickets
	peak          int64
	registrations int64
	pinning       time.Duration
	closed        bool
}

// Stats is what an engine did. Sizes are in bytes.
type Stats struct {
	BytesOut, CopiesOut int64
	BytesIn, CopiesIn   int64
	Live, Peak          int64         // held by tickets, now and at most
	Arena               int64         // of addresses: the budget, or the part of it that could be pinned
	Pinned              int64         // taken from the host
	Registrations       int64         // in which it was pinned
	Pinning             time.Duration // that this took, the first touch of the pages included
	BusyOut, BusyIn     time.Duration // of the lanes, in copies that have passed; 0 unless they are timed

	Borrows                int64 // loans that were made
	Borrowed, BorrowedPeak int64 // what the GPU uses in place, now and at most
}

// Open makes an engine that has pinned nothing yet.
func Open(dev Device, o Options) (*Engine, error) {
	size := o.Budget / host.Page() * host.Page()
	if size <= 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrBudget, o.Budget)
	}
	e := &Engine{dev: dev, chunk: o.Chunk, budget: size, patience: defaultPatience, timed: o.Timed, inPlace: o.InPlace, log: o.Log, arena: newArena(size), allowance: o.Allowance}
	if e.chunk == 0 {
		e.chunk = min(DefaultChunk, max(leastChunk, size/16/leastChunk*leastChunk))
	}
	if e.log == nil {
		e.log = func(string) {}
	}
	var err error
	if e.memory, err = host.Map(size, o.Node); err != nil {
		return nil, err
	}
	if err := e.openLanes(); err != nil {
		return nil, errors.Join(err, e.memory.Unmap())
	}
	return e, nil
}

func (e *Engine) openLanes() (err error) {
	if e.out.stream, err = e.dev.StreamCreate(); err != nil {
		return fmt.Errorf("make a stream: %w", err)
	}
	if e.in.stream, err = e.dev.StreamCreate(); err != nil {
		return errors.Join(fmt.Errorf("make a stream: %w", err), e.dev.StreamDestroy(e.out.stream))
	}
	return nil
}

// Close waits for the copies and releases everything; what tickets hold is lost. Host memory that the driver fails to unregister is
// kept mapped. The engine is closed also after an error.
func (e *Engine) Close() error {
	if e.closed {
		return ErrClosed
	}
	e.closed = true
	e.ahead.end()
	errs := errors.Join(e.dev.StreamSynchronize(e.out.stream), e.dev.StreamSynchronize(e.in.stream))
	for i := range e.tickets {
		e.forget(&e.tickets[i])
	}
	for _, r := range e.readers {
		errs = errors.Join(errs, e.dev.EventDestroy(r.done))
	}
	for _, l := range [2]*lane{&e.out, &e.in} {
		l.collect(e.dev, l.waiting())
		errs = errors.Join(errs, e.dev.StreamDestroy(l.stream))
	}
	e.closeBorrowed()
	if err := errors.Join(errs, e.unpin()); err != nil {
		return fmt.Errorf("close the swapper: %w", err)
	}
	return e.memory.Unmap()
}

// Stats returns what was done so far.
func (e *Engine) Stats() Stats {
	if !e.closed {
		e.out.collect(e.dev, e.out.waiting())
		e.in.collect(e.dev, e.in.waiting())
	}
	return Stats{
		BytesOut: e.out.bytes, CopiesOut: e.out.count, BytesIn: e.in.bytes, CopiesIn: e.in.count,
		Live: e.held, Peak: e.peak, Arena: e.arena.size, Pinned: e.pinned, Registrations: e.registrations, Pinning: e.pinning,
		BusyOut: e.out.busy, BusyIn: e.in.busy,
		Borrows: e.borrowed.count, Borrowed: e.borrowed.live, BorrowedPeak: e.borrowed.peak,
	}
}
