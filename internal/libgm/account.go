package main

import (
	"math/bits"
	"time"

	"gm/internal/cuda"
	"gm/internal/libgm/page"
)

// smallRequest is the size up to which a request is a small one, in bytes.
const smallRequest = 1 << 20

func kindOf(taken int64) int {
	if taken <= smallRequest {
		return page.Small
	}
	return page.Large
}

// enter counts a request that was met.
func (g *gpu) enter(e *entry) {
	g.ledger.Put(e.ptr, *e)
	a := &g.account
	a.open()
	for _, kind := range [2]int{page.All, kindOf(e.taken)} {
		a.Allocation[kind].Add(1)
		a.AllocatedBytes[kind].Add(e.taken)
		a.RequestedBytes[kind].Add(e.requested)
		a.ActiveBytes[kind].Add(e.taken)
	}
	*a.marked = max(*a.marked, a.AllocatedBytes[page.All].Current)
	a.close()
	if g.events != nil {
		g.events.add(eventAlloc, e)
	}
}

// leave counts a request whose memory was released.
func (g *gpu) leave(e *entry) {
	a := &g.account
	a.open()
	for _, kind := range [2]int{page.All, kindOf(e.taken)} {
		a.Allocation[kind].Sub(1)
		a.AllocatedBytes[kind].Sub(e.taken)
		a.RequestedBytes[kind].Sub(e.requested)
		a.ActiveBytes[kind].Sub(e.taken)
	}
	a.close()
	if g.events != nil {
		g.events.add(eventFree, e)
	}
}

// What an allocator may report beyond blocks.Allocator.
type (
	stitcher interface {
		// Stitches returns how many requests were met by mapping free pieces together.
		Stitches() int64
	}
	lender interface {
		// Pending returns the bytes in blocks that were freed and that other streams still use: those of small and large requests.
		Pending() (small, large int64)
	}
)

// follow is sync where there may be something new.
func (g *gpu) follow() {
	if g.account.DriverCalls != g.calls || g.pending[page.All] != 0 {
		g.sync()
	}
}

// sync copies what only the allocator counts into the account.
func (g *gpu) sync() {
	g.calls = g.account.DriverCalls
	if g.broken {
		return
	}
	g.account.open()
	defer g.account.close()
	g.account.Retries = g.alloc.Stats().Retries - g.since.retries
	if s, ok := g.alloc.(stitcher); ok {
		g.account.Stitches = s.Stitches() - g.since.stitches
	}
	if a, ok := g.alloc.(relaxed); ok {
		g.pace.watch(a, g.account.DriverNS, g.account.Stitches, g.alloc.Stats().PeakAllocated, time.Now())
	}
	if l, ok := g.alloc.(lender); ok {
		small, large := l.Pending()
		g.setPending(page.Small, small)
		g.setPending(page.Large, large)
		g.setPending(page.All, small+large)
	}
}

func (g *gpu) setPending(kind int, bytes int64) {
	if n := bytes - g.pending[kind]; n > 0 {
		g.account.ActiveBytes[kind].Add(n)
	} else {
		g.account.ActiveBytes[kind].Sub(-n)
	}
	g.pending[kind] = bytes
}

// recordStream notes that another stream also uses the memory at p; false if p is not a live request. A default stream may be that of any
// of the devices that are open, a bit each: their handles are the same.
func (g *gpu) recordStream(p cuda.Ptr, stream cuda.Stream, opened uint32) bool {
	g.drain()
	if e, ok := g.small.find(p, true); ok {
		g.ledger.Put(p, e)
	}
	e := g.ledger.Find(p)
	if e == nil {
		return false
	}
	g.borrow(e, stream)
	if stream > cuda.PerThreadStream {
		return true
	}
	for others := opened &^ (1 << g.ordinal); others != 0; others &= others - 1 {
		g.borrow(e, defaultOf(bits.TrailingZeros32(others)))
	}
	return true
}

// borrow notes that another stream also uses a live request. An event of a per-thread default stream belongs to the thread that records it.
// The legacy default stream waits for all of those streams, so it is recorded in their place.
func (g *gpu) borrow(e *entry, stream cuda.Stream) {
	if stream == cuda.LegacyStream || stream == cuda.PerThreadStream {
		stream = 0
	}
	if e.flags&plain != 0 || g.broken || stream == e.stream {
		return
	}
	if e.flags&inC != 0 {
		g.small.stitch.Torch().LendOutside(e.ptr, e.taken, stream)
	} else if err := g.alloc.RecordStream(e.ptr, stream); err != nil {
		g.complain("record stream", err)
		return
	}
	e.flags |= lent
}

// find returns the live request at p, and whether there is one.
func (g *gpu) find(p cuda.Ptr) (entry, bool) {
	g.drain()
	if e, ok := g.small.find(p, false); ok {
		return e, true
	}
	if e := g.ledger.Find(p); e != nil {
		return *e, true
	}
	return entry{}, false
}

// each calls f for each live request.
func (g *gpu) each(f func(e *entry)) {
	g.small.each(f)
	g.ledger.Each(func(_ cuda.Ptr, e *entry) { f(e) })
}

// knows says whether p is a live request.
func (g *gpu) knows(p cuda.Ptr) bool {
	_, ok := g.find(p)
	return ok
}

// base returns the start and the size of the memory that an address lies in.
func (g *gpu) base(p cuda.Ptr) (cuda.Ptr, int64) {
	if e, ok := g.find(p); ok {
		return e.ptr, e.taken
	}
	var base cuda.Ptr
	var size int64
	g.each(func(e *entry) {
		if p >= e.ptr && p < e.ptr+cuda.Ptr(e.taken) {
			base, size = e.ptr, e.taken
		}
	})
	return base, size
}

// empty returns cached memory to the driver.
func (g *gpu) empty() {
	g.collect()
	if g.broken || g.meter.capturing {
		return
	}
	g.emptyPools()
	if err := g.alloc.Empty(); err != nil {
		g.complain("return memory to the driver", err)
	}
	g.dev.Settle()
	g.sync()
}

// resetStats sets peaks to the current values, or sets the accumulated counters to zero.
func (g *gpu) resetStats(peaks bool) {
	g.drain()
	g.sync()
	a := &g.account
	a.open()
	defer a.close()
	for _, counters := range []*[page.Kinds]page.Counter{
		&a.Allocation, &a.AllocatedBytes, &a.RequestedBytes, &a.ActiveBytes, &a.ReservedBytes, &a.Segment,
	} {
		for i := range counters {
			if peaks {
				counters[i].Peak = counters[i].Current
			} else {
				counters[i].Allocated, counters[i].Freed = 0, 0
			}
		}
	}
	if !peaks {
		g.since.retries += a.Retries
		g.since.stitches += a.Stitches
		a.Retries, a.OOMs, a.Stitches, a.DriverCalls, a.DriverNS, g.calls = 0, 0, 0, 0, 0, 0
		g.pace.recount()
	}
}
