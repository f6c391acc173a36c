package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/retry"
	"gm/internal/libgm/page"
)

// gpu is one device: its allocator, and the account that is kept around it.
type gpu struct {
	ordinal int
	log     *logger
	meter   *meter
	dev     *retry.Device // the meter, which keeps track of memory that the driver failed to release
	alloc   blocks.Allocator
	freed   queue
	ledger  ledger
	account books
	small   small
	pools   pools
	pace    pace
	events  *events // nil unless requests are recorded

	iterations iterations

	deferred []entry                           // freed during a capture, and plain or lent
	pending  [page.Kinds]int64                 // bytes freed that other streams still use
	calls    int64                             // driver calls at the last request
	since    struct{ retries, stitches int64 } // the allocator's, when the account was last reset
	broken   bool                              // the allocator panicked: it is not called again
}

func newGPU(ordinal int, dev cuda.Device, total int64, shown *page.Device, p *process) (*gpu, error) {
	g := &gpu{
		ordinal: ordinal, log: p.log, freed: newQueue(ordinal), ledger: newLedger(), account: newBooks(ordinal, shown), pools: newPools(),
	}
	g.meter = newMeter(dev, total, g.account, p)
	var err error
	g.meter.setLimit(p.settings.limit)
	g.dev = retry.New(g.meter, g.complain)
	if g.alloc, err = p.settings.newAllocator(g.dev, ordinal, p.log); err != nil {
		return nil, fmt.Errorf("make the allocator: %w", err)
	}
	if p.settings.traced() {
		g.events, err = newEvents(p.settings.events)
		if err != nil {
			p.log.printf("GM_STATS: %v; requests are not recorded", err)
		}
	}
	g.small = newSmall(ordinal, g.alloc, g.events != nil)
	return g, nil
}

// malloc serves a request, which is not in the account yet. A hasty one that finds no room fails at once, and is asked again when some was made.
func (g *gpu) malloc(size int64, stream cuda.Stream, pool int32, hasty bool) (e entry, err error) {
	g.collect()
	g.small.look()
	if pool != 0 {
		g.ask(blocks.Pool(pool), stream)
	}
	e = entry{requested: size, stream: stream, pool: pool}
	if stream == cuda.LegacyStream {
		e.stream = 0
	}
	g.meter.stream = e.stream
	if err = g.serve(&e, hasty); err != nil && !(hasty && noMemory(err)) {
		err = g.retry(&e, err)
	}
	if err != nil {
		return entry{}, err
	}
	if stream == cuda.PerThreadStream {
		g.borrow(&e, 0)
	}
	g.follow()
	return e, nil
}

// serve has the allocator serve a request, or the driver itself when the allocator is broken. What exceeds the whole device is
// refused before cached memory is released for it.
func (g *gpu) serve(e *entry, hasty bool) (err error) {
	if g.broken || e.requested > g.meter.limit {
		return g.servePlain(e)
	}
	before := g.handedOut()
	if a, ok := g.alloc.(interface{ SetHasty(on bool) }); ok && hasty {
		a.SetHasty(true)
		defer a.SetHasty(false)
	}
	e.ptr, err = g.alloc.Malloc(e.requested, e.stream, blocks.Pool(e.pool))
	e.taken = g.handedOut() - before
	return err
}

// handedOut returns the bytes that the allocator has handed out, rounding included.
func (g *gpu) handedOut() int64 {
	if a, ok := g.alloc.(interface{ Allocated() int64 }); ok {
		return a.Allocated()
	}
	return g.alloc.Stats().Allocated
}

// release returns the memory of a request to the allocator.
func (g *gpu) release(p cuda.Ptr) {
	if g.broken {
		return
	}
	if err := g.alloc.Free(p); err != nil {
		g.complain("free", err)
	}
}

// fallBack has the driver serve all requests from now on.
func (g *gpu) fallBack() {
	g.broken = true
	g.small.end(func(e *entry) { g.ledger.Put(e.ptr, *e) })
}

// grow gives C a segment for small requests of a stream, unless memory has become free for them. It reports whether it did either.
func (g *gpu) grow(stream cuda.Stream) bool {
	g.drain()
	g.small.look()
	g.meter.stream = stream
	if g.returned() {
		return true
	}
	p, err := g.small.stitch.OutsideSegment()
	if noMemory(err) { // warm blocks may hold it
		g.collect()
		p, err = g.small.stitch.OutsideSegment()
	}
	if err != nil {
		return g.returned() // before it failed it has waited for them
	}
	g.follow()
	if bool(C.gm_small_add(g.small.ordinal, C.uint64_t(p), C.uint64_t(stream))) {
		return true
	}
	if err := g.small.stitch.Torch().DropOutsideSegment(p); err != nil {
		g.complain("free a segment", err)
	}
	return false
}

// returned reports whether C got blocks back that other streams had used, since it was last asked.
func (g *gpu) returned() bool {
	any, err := g.small.stitch.Torch().ProcessOutside()
	if err != nil {
		g.complain("process events", err)
	}
	return any
}

// freeInC frees a block of C that was in the ledger.
func (g *gpu) freeInC(e *entry) {
	if e.flags&lent == 0 {
		g.small.Return(e.ptr)
	} else if err := g.small.stitch.Torch().FreeOutside(e.ptr); err != nil {
		g.complain("free", err)
	}
	g.sync()
}

func (g *gpu) servePlain(e *entry) (err error) {
	e.taken, e.flags = e.requested, plain
	e.ptr, err = g.dev.MemAlloc(e.requested)
	return err
}

// retry repeats a request that failed: after it has waited for the addresses that other threads are freeing and has emptied unused pools,
// and last from the pools that may serve it then.
// A request that fails for another reason than a full device goes to the driver itself.
func (g *gpu) retry(e *entry, first error) error {
	g.freed.settle()
	g.collect()
	g.emptyPools()
	err := g.serve(e, false)
	if err == nil || noMemory(err) && g.serveSpare(e) {
		return nil
	}
	if noMemory(err) {
		return err
	}
	g.complain(fmt.Sprintf("request of %d bytes", e.requested), first)
	return g.servePlain(e)
}

// collect frees what was queued, and the warm blocks of C.
func (g *gpu) collect() {
	g.drain()
	if err := g.small.freeWarm(); err != nil {
		g.complain("free", err)
	}
}

// drain frees the addresses that were queued since the last request.
func (g *gpu) drain() {
	for p, ok := g.freed.pop(); ok; p, ok = g.freed.pop() {
		if p&C.GM_COUNTED_BIT != 0 {
			g.freeCounted(p &^ C.GM_COUNTED_BIT)
		} else {
			g.free(p)
		}
	}
}

// freeCounted frees what C held.
func (g *gpu) freeCounted(p cuda.Ptr) {
	if e, ok := g.ledger.Take(p); ok {
		g.giveBack(&e)
	} else {
		g.release(p)
	}
}

// drainAtExit counts the addresses that were queued since the last request. Their memory is released with the process.
func (g *gpu) drainAtExit() {
	for p, ok := g.freed.pop(); ok; p, ok = g.freed.pop() {
		if e, ok := g.ledger.Take(p); ok {
			g.leave(&e)
		}
	}
}

func (g *gpu) free(p cuda.Ptr) {
	e, ok := g.ledger.Take(p)
	if !ok {
		g.log.printf("device %d: free of %#x, which was not allocated here", g.ordinal, p)
		return
	}
	g.leave(&e)
	g.giveBack(&e)
}

// giveBack returns the memory of a request that has left the account.
func (g *gpu) giveBack(e *entry) {
	if e.flags != 0 || g.broken {
		g.freeSpecial(e)
		return
	}
	g.release(e.ptr)
}

// freeSpecial frees what did not come from the allocator, or is used by other streams than its own.
func (g *gpu) freeSpecial(e *entry) {
	switch {
	case g.meter.capturing:
		g.deferred = append(g.deferred, *e)
	case e.flags&plain != 0:
		if err := g.dev.MemFree(e.ptr); err != nil {
			g.complain("free", err)
		}
	case g.broken:
	case e.flags&inC != 0:
		g.freeInC(e)
	default:
		g.release(e.ptr)
		g.sync()
	}
}

// complain logs an error unless it is expected: memory is gone when the driver is shut down, and what a capture forbids is done in
// another way.
func (g *gpu) complain(what string, err error) {
	if !errors.Is(err, driver.ErrShutdown) && !errors.Is(err, cuda.ErrCapturing) {
		g.log.printf("device %d: %s: %v", g.ordinal, what, err)
	}
}
