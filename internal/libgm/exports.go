package main

// #include "libgm.h"
import "C"

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/libgm/page"
)

// What C calls (gm.c, filter.c): to open a device with no lock held, all else with the lock of the device, which is open. None of them
// panics.

//export go_open
func go_open(device C.int) (opened C.bool) {
	defer guard(device)
	if err := self.open(int(device)); err != nil {
		fail(err.Error())
		return false
	}
	return true
}

// go_malloc serves a request. If hold is set C is to hold it, and to count taken bytes for it. A special request is in the ledger as well;
// another may become warm if its rank is not negative. If there is no memory it is full, and go_failed is to be called unless room is made. A hasty
// request is full before memory is looked for that takes time to get.
//
//export go_malloc
func go_malloc(device C.int, size C.int64_t, stream C.uint64_t, pool C.int32_t, hold, hasty C.bool) (
	p C.uint64_t, taken C.int64_t, special C.bool, rank C.int32_t, full C.bool,
) {
	defer func() {
		if r := recover(); r != nil {
			p, taken, special, rank, full = C.uint64_t(self.afterPanic(int(device), int64(size), r)), 0, false, -1, false
		}
	}()
	g := self.gpu(device)
	e, err := g.malloc(int64(size), cuda.Stream(stream), int32(pool), bool(hasty))
	if err != nil {
		if !noMemory(err) {
			fail(g.failure(int64(size), err))
		}
		return 0, 0, false, -1, C.bool(noMemory(err))
	}
	if !hold {
		g.enter(&e)
		return C.uint64_t(e.ptr), 0, false, -1, false
	}
	if e.special() {
		g.ledger.Put(e.ptr, e)
	}
	return C.uint64_t(e.ptr), C.int64_t(e.taken), C.bool(e.special()), C.int32_t(g.small.rank(&e)), false
}

// go_failed says why a request failed for which no room could be made.
//
//export go_failed
func go_failed(device C.int, size C.int64_t) {
	defer guard(device)
	fail(self.gpu(device).failure(int64(size), cuda.ErrOutOfMemory))
}

// fail keeps the text of a failure for this thread.
func fail(text string) {
	C.gm_set_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
}

// broke notes that the allocator of a device panicked.
func (p *process) broke(device int, reason any) *gpu {
	fail(fmt.Sprint("BUG: ", reason))
	p.log.printf("device %d: BUG: %v; from now on the driver serves all requests\n%s", device, reason, debug.Stack())
	g := p.gpus[device].Load()
	if g != nil {
		g.fallBack()
	}
	return g
}

// afterPanic serves the request during which the allocator panicked by the driver itself.
func (p *process) afterPanic(device int, size int64, reason any) (ptr cuda.Ptr) {
	defer func() {
		if r := recover(); r != nil {
			fail(fmt.Sprint(r))
		}
	}()
	g := p.broke(device, reason)
	if g == nil {
		return 0
	}
	e, err := g.malloc(size, 0, 0, false)
	if err != nil {
		fail(g.failure(size, err))
		return 0
	}
	g.enter(&e)
	return e.ptr
}

// guard is deferred by what has no result to give after a panic.
func guard(device C.int) {
	if r := recover(); r != nil {
		self.broke(int(device), r)
	}
}

//export go_drain
func go_drain(device C.int) {
	defer guard(device)
	self.gpu(device).drain()
}

//export go_grow
func go_grow(device C.int, stream C.uint64_t) (grown C.bool) {
	defer guard(device)
	return C.bool(self.gpu(device).grow(cuda.Stream(stream)))
}

//export go_record_stream
func go_record_stream(device C.int, p, stream C.uint64_t, opened C.uint32_t) (known C.bool) {
	defer guard(device)
	return C.bool(self.gpu(device).recordStream(cuda.Ptr(p), cuda.Stream(stream), uint32(opened)))
}

//export go_base_alloc
func go_base_alloc(device C.int, p C.uint64_t, size *C.uint64_t) (base C.uint64_t) {
	defer guard(device)
	b, n := self.gpu(device).base(cuda.Ptr(p))
	*size = C.uint64_t(n)
	return C.uint64_t(b)
}

//export go_knows
func go_knows(device C.int, p C.uint64_t) (known C.bool) {
	defer guard(device)
	return C.bool(self.gpu(device).knows(cuda.Ptr(p)))
}

//export go_empty
func go_empty(device C.int) {
	defer guard(device)
	self.gpu(device).empty()
}

//export go_memory_fraction
func go_memory_fraction(device C.int, fraction C.double) {
	defer guard(device)
	self.gpu(device).meter.setFraction(float64(fraction))
}

//export go_begin_pool
func go_begin_pool(device C.int, id0, id1 C.uint64_t) (pool C.int32_t) {
	defer guard(device)
	g := self.gpu(device)
	if g.broken { // what the driver itself serves is not kept for a graph
		fail("No memory pool can be begun: the allocator has failed.")
		return 0
	}
	return C.int32_t(g.beginPool(poolID{uint64(id0), uint64(id1)}))
}

//export go_end_pool
func go_end_pool(device C.int, pool C.int32_t) {
	defer guard(device)
	self.gpu(device).endPool(blocks.Pool(pool))
}

//export go_release_pool
func go_release_pool(device C.int, id0, id1 C.uint64_t) {
	defer guard(device)
	self.gpu(device).releasePool(poolID{uint64(id0), uint64(id1)})
}

//export go_get_stats
func go_get_stats(device C.int, stats *C.struct_gm_stats) {
	defer guard(device)
	g := self.gpu(device)
	g.drain()
	g.sync()
	*(*page.Account)(unsafe.Pointer(stats)) = g.account.copy()
}

//export go_reset_stats
func go_reset_stats(device C.int, peaks C.bool) {
	defer guard(device)
	self.gpu(device).resetStats(bool(peaks))
}

//export go_mark_peak
func go_mark_peak(device C.int) {
	defer guard(device)
	g := self.gpu(device)
	g.drain()
	g.account.open()
	defer g.account.close()
	*g.account.marked = g.account.AllocatedBytes[page.All].Current
}

//export go_snapshot
func go_snapshot(text *C.char, n C.size_t) C.size_t {
	snapshot := self.snapshotOrNone()
	if n > 0 {
		to := unsafe.Slice((*byte)(unsafe.Pointer(text)), n)
		to[min(copy(to, snapshot), int(n)-1)] = 0
	}
	return C.size_t(len(snapshot))
}

//export go_finish
func go_finish() {
	defer self.log.settle()
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("at the end of the process: %v", r)
		}
	}()
	self.finish()
}
