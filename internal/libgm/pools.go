package main

import (
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// poolID names a private pool as PyTorch does.
type poolID struct{ id0, id1 uint64 }

// pools are the private pools of a device. A pool is used by each graph that began it and has not released it, and by each
// torch.cuda.MemPool that retained it. An unused pool's memory may be released.
type pools struct {
	numbers map[poolID]blocks.Pool
	users   map[blocks.Pool]int
	last    blocks.Pool
	begun   map[blocks.Pool]*begun
	spare   map[blocks.Pool]bool // those whose free memory serves the default pool when the device is full
}

// begun is a pool between its begin and its end. Whether that is for a CUDA graph is only known from the requests: the begin comes
// before the capture, and there may be none (torch.cuda.use_mem_pool).
type begun struct {
	times    int  // begins without their ends
	asked    bool // a request has come
	captured bool // one from a stream that is captured has
}

func newPools() pools {
	return pools{
		numbers: map[poolID]blocks.Pool{}, users: map[blocks.Pool]int{}, begun: map[blocks.Pool]*begun{}, spare: map[blocks.Pool]bool{},
	}
}

// capturing says whether a CUDA graph is being captured, or may be.
func (p *pools) capturing() bool {
	for _, b := range p.begun {
		if b.captured || !b.asked {
			return true
		}
	}
	return false
}

// beginPool returns the number of a pool and counts one more user.
func (g *gpu) beginPool(id poolID) blocks.Pool {
	g.drain()
	pool := g.pools.retain(id)
	if g.pools.begun[pool] == nil {
		g.pools.begun[pool] = new(begun)
	}
	g.pools.begun[pool].times++
	g.setCapturing(g.pools.capturing())
	return pool
}

// retain returns the number of a pool and counts one more user.
func (p *pools) retain(id poolID) blocks.Pool {
	pool, ok := p.numbers[id]
	if !ok {
		p.last++
		pool = p.last
		p.numbers[id] = pool
	}
	p.users[pool]++
	return pool
}

// ask learns from a request whether the pool was begun for a CUDA graph.
func (g *gpu) ask(pool blocks.Pool, stream cuda.Stream) {
	b := g.pools.begun[pool]
	if b == nil || b.captured {
		return
	}
	b.asked, b.captured = true, g.meter.inGraph(stream)
	g.setCapturing(g.pools.capturing())
}

// setCapturing notes whether a CUDA graph is being captured. Memory that was freed during a capture is released after it.
func (g *gpu) setCapturing(on bool) {
	if on == g.meter.capturing {
		return
	}
	g.meter.capturing = on
	if a, ok := g.alloc.(blocks.Resident); ok && !g.broken {
		if err := a.Capture(on); err != nil {
			g.complain("capture", err)
		}
	}
	if on {
		return
	}
	deferred := g.deferred
	g.deferred = nil
	for i := range deferred {
		g.freeSpecial(&deferred[i])
	}
}

// endPool ends what beginPool began.
func (g *gpu) endPool(pool blocks.Pool) {
	g.drain()
	if b := g.pools.begun[pool]; b.times > 1 {
		b.times--
	} else {
		delete(g.pools.begun, pool)
	}
	g.setCapturing(g.pools.capturing())
}

// releasePool counts one user less of a pool.
func (g *gpu) releasePool(id poolID) {
	if pool, ok := g.pools.numbers[id]; ok {
		g.pools.users[pool] = max(g.pools.users[pool]-1, 0)
	}
}

// emptyPools releases the free memory of unused pools, and forgets the pools that have none left.
func (g *gpu) emptyPools() {
	for id := range g.pools.numbers {
		g.emptyPool(id)
	}
}

// emptyPool releases the free memory of a pool, unless it is used, and forgets the pool if it has none left.
func (g *gpu) emptyPool(id poolID) {
	resident, ok := g.alloc.(blocks.Resident)
	pool, known := g.pools.numbers[id]
	if !ok || !known || g.broken || g.meter.capturing || g.pools.users[pool] > 0 {
		return
	}
	none, err := resident.EmptyPool(pool)
	if err != nil {
		g.complain("empty a private pool", err)
	} else if none {
		delete(g.pools.numbers, id)
		delete(g.pools.users, pool)
		delete(g.pools.spare, pool)
	}
}

// cacher is an allocator that can serve a request from what a private pool has free.
type cacher interface {
	// MallocCached takes no memory from the device, and returns 0 if nothing fits.
	MallocCached(size int64, stream cuda.Stream, pool blocks.Pool) cuda.Ptr
}

// serveSpare serves a request of the default pool from the free memory of private pools that may be used so. The memory stays theirs.
func (g *gpu) serveSpare(e *entry) bool {
	a, ok := g.alloc.(cacher)
	if !ok || g.broken || e.pool != 0 {
		return false
	}
	before := g.handedOut()
	for pool := range g.pools.spare {
		if e.ptr = a.MallocCached(e.requested, e.stream, pool); e.ptr != 0 {
			e.taken, e.pool, e.flags = g.handedOut()-before, int32(pool), 0
			return true
		}
	}
	return false
}
