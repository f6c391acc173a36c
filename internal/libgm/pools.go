package main

import (
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// poolID names a private pool as PyTorch does.
type poolID struct{ id0, id1 uint64 }

// pools are the private pools of a device. A pool is used by each graph that began it and has not released it. An
// unused pool's memory may be released.
type pools struct {
	numbers map[poolID]blocks.Pool
	users   map[blocks.Pool]int
	last    blocks.Pool
	begun   map[blocks.Pool]*begun
}

// begun is a pool between its begin and its end. Whether that is for a CUDA graph is only known from the requests: the begin comes
// before the capture, and there may be none (torch.cuda.use_mem_pool).
type begun struct {
	times    int  // begins without their ends
	asked    bool // a request has come
	captured bool // one from a stream that is captured has
}

func newPools() pools {
	return pools{numbers: map[poolID]blocks.Pool{}, users: map[blocks.Pool]int{}, begun: map[blocks.Pool]*begun{}}
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
	pool, ok := g.pools.numbers[id]
	if !ok {
		g.pools.last++
		pool = g.pools.last
		g.pools.numbers[id] = pool
	}
	g.pools.users[pool]++
	if g.pools.begun[pool] == nil {
		g.pools.begun[pool] = new(begun)
	}
	g.pools.begun[pool].times++
	g.setCapturing(g.pools.capturing())
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
	resident, ok := g.alloc.(blocks.Resident)
	if !ok || g.broken || g.meter.capturing {
		return
	}
	for id, pool := range g.pools.numbers {
		if g.pools.users[pool] > 0 {
			continue
		}
		none, err := resident.EmptyPool(pool)
		if err != nil {
			g.complain("empty a private pool", err)
		} else if none {
			delete(g.pools.numbers, id)
			delete(g.pools.users, pool)
		}
	}
}
