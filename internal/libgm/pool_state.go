package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

// errNoPool means that no pool of a device has a name.
var errNoPool = errors.New("there is no such pool")

// liveOf returns the live requests of a pool.
func (g *gpu) liveOf(id poolID) ([]entry, error) {
	g.freed.settle()
	g.drain()
	pool, ok := g.pools.numbers[id]
	if !ok {
		return nil, errNoPool
	}
	var live []entry
	g.ledger.Each(func(_ cuda.Ptr, e *entry) {
		if e.pool == int32(pool) {
			live = append(live, *e)
		}
	})
	return live, nil
}

// restorePool makes exactly some requests the live ones of a pool. After an error nothing has changed.
func (g *gpu) restorePool(id poolID, wanted []C.struct_gm_live) error {
	live, err := g.liveOf(id)
	if err != nil {
		return err
	}
	pool := g.pools.numbers[id]
	if err := g.restorable(pool, live); err != nil {
		return err
	}
	exchanger, ok := g.alloc.(blocks.Exchanger)
	if !ok {
		return errors.New("the allocator cannot do that")
	}
	freed := make([]cuda.Ptr, len(live))
	for i := range live {
		freed[i] = live[i].ptr
	}
	places := make([]blocks.Place, len(wanted))
	for i, w := range wanted {
		places[i] = blocks.Place{Address: cuda.Ptr(w.address), Size: int64(w.size), Stream: cuda.Stream(w.stream)}
		if places[i].Stream == cuda.LegacyStream {
			places[i].Stream = 0
		}
	}
	if err := exchanger.Exchange(pool, freed, places); err != nil {
		return err
	}
	g.replace(pool, live, places)
	return nil
}

// restorable returns an error if a pool has memory that its allocator does not know, or that it cannot free now.
func (g *gpu) restorable(pool blocks.Pool, live []entry) error {
	if g.broken {
		return errors.New("the allocator has failed")
	}
	for i := range live {
		if live[i].flags&plain != 0 {
			return fmt.Errorf("the driver itself serves the request at %#x", live[i].ptr)
		}
	}
	for i := range g.deferred {
		if g.deferred[i].pool == int32(pool) {
			return fmt.Errorf("the request at %#x is released after the capture: %w", g.deferred[i].ptr, errCapturing)
		}
	}
	return nil
}

// replace enters what the allocator has put in the place of the live requests of a pool. Requests that are the same stay as they are.
func (g *gpu) replace(pool blocks.Pool, live []entry, places []blocks.Place) {
	before := make(map[cuda.Ptr]entry, len(live))
	for _, e := range live {
		before[e.ptr] = e
	}
	var entered []entry
	for _, p := range places {
		e, was := before[p.Address]
		if was && e.requested == p.Size && e.stream == p.Stream && e.taken == p.Taken {
			delete(before, p.Address)
			continue
		}
		entered = append(entered, entry{
			ptr: p.Address, requested: p.Size, taken: p.Taken, stream: p.Stream, pool: int32(pool), flags: e.flags,
		})
	}
	for p, e := range before {
		g.ledger.Take(p)
		if g.small.stitch != nil {
			g.small.drop(p)
		} else {
			g.leave(&e)
		}
	}
	for i := range entered {
		if entered[i].stream == cuda.PerThreadStream {
			g.borrow(&entered[i], 0)
		}
		if g.small.hold(&entered[i]) {
			g.ledger.Put(entered[i].ptr, entered[i])
		} else {
			g.enter(&entered[i])
		}
	}
}

//export go_pool_live
func go_pool_live(device C.int, id0, id1 C.uint64_t, to *C.struct_gm_live, room C.size_t) (n C.int64_t) {
	defer func() {
		if r := recover(); r != nil {
			self.broke(int(device), r)
			n = -1
		}
	}()
	live, err := self.gpu(device).liveOf(poolID{uint64(id0), uint64(id1)})
	if err != nil {
		fail(fmt.Sprintf("The live requests of a memory pool: %v.", err))
		return -1
	}
	copied := unsafe.Slice(to, min(room, C.size_t(len(live))))
	for i := range copied {
		e := &live[i]
		copied[i] = C.struct_gm_live{address: C.uint64_t(e.ptr), size: C.int64_t(e.requested), stream: C.uint64_t(e.stream)}
	}
	return C.int64_t(len(live))
}

//export go_pool_restore
func go_pool_restore(device C.int, id0, id1 C.uint64_t, wanted *C.struct_gm_live, n C.size_t) (done C.bool) {
	defer guard(device)
	err := self.gpu(device).restorePool(poolID{uint64(id0), uint64(id1)}, unsafe.Slice(wanted, n))
	if err != nil {
		fail(fmt.Sprintf("The memory pool cannot be restored: %v.", err))
	}
	return C.bool(err == nil)
}

//export go_retain_pool
func go_retain_pool(device C.int, id0, id1 C.uint64_t) {
	defer guard(device)
	self.gpu(device).pools.retain(poolID{uint64(id0), uint64(id1)})
}

//export go_pool_uses
func go_pool_uses(device C.int, id0, id1 C.uint64_t) (n C.int) {
	defer guard(device)
	p := &self.gpu(device).pools
	pool, ok := p.numbers[poolID{uint64(id0), uint64(id1)}]
	if !ok {
		return -1
	}
	return C.int(p.users[pool])
}

//export go_empty_pool
func go_empty_pool(device C.int, id0, id1 C.uint64_t) {
	defer guard(device)
	g := self.gpu(device)
	g.drain()
	g.emptyPool(poolID{uint64(id0), uint64(id1)})
	g.dev.Settle()
	g.sync()
}

//export go_pool_use_on_oom
func go_pool_use_on_oom(device C.int, id0, id1 C.uint64_t, on C.bool) {
	defer guard(device)
	p := &self.gpu(device).pools
	if pool, ok := p.numbers[poolID{uint64(id0), uint64(id1)}]; ok && bool(on) {
		p.spare[pool] = true
	} else {
		delete(p.spare, pool)
	}
}
