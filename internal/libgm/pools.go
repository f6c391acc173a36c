package main

import (
	"gm/internal/blocks"
)

// poolID names a private pool as PyTorch does.
type poolID struct{ id0, id1 uint64 }

// pools are the private pools of a device. One is used by as many graphs as have begun it and not released it; then its memory
// may go.
type pools struct {
	numbers map[poolID]blocks.Pool
	users   map[blocks.Pool]int
	last    blocks.Pool
	begun   int // begins without their ends
}

func newPools() pools {
	return pools{numbers: map[poolID]blocks.Pool{}, users: map[blocks.Pool]int{}}
}

// beginPool returns the number of a pool, which one more graph uses.
func (g *gpu) beginPool(id poolID) blocks.Pool {
	g.drain()
	pool, ok := g.pools.numbers[id]
	if !ok {
		g.pools.last++
		pool = g.pools.last
		g.pools.numbers[id] = pool
	}
	g.pools.users[pool]++
	g.pools.begun++
	g.setCapturing(true)
	return pool
}

// eventless is an allocator that can do without events for a while.
type eventless interface {
	// Capture says that a CUDA graph is being captured, or no longer.
	Capture(on bool) error
}

// setCapturing tells all who care whether a CUDA graph is being captured.
func (g *gpu) setCapturing(on bool) {
	if on == g.meter.capturing {
		return
	}
	g.meter.capturing = on
	if a, ok := g.alloc.(eventless); ok && !g.broken {
		if err := a.Capture(on); err != nil {
			g.complain("capture", err)
		}
	}
}

// endPool ends what beginPool began. What was freed since goes where it came from.
func (g *gpu) endPool() {
	g.drain()
	g.pools.begun = max(g.pools.begun-1, 0)
	g.setCapturing(g.pools.begun > 0)
	if g.meter.capturing {
		return
	}
	deferred := g.deferred
	g.deferred = nil
	for i := range deferred {
		g.freeSpecial(&deferred[i])
	}
}

// releasePool says that one graph less uses a pool.
func (g *gpu) releasePool(id poolID) {
	if pool, ok := g.pools.numbers[id]; ok {
		g.pools.users[pool] = max(g.pools.users[pool]-1, 0)
	}
}

// poolEmptier is an allocator with private pools.
type poolEmptier interface {
	// EmptyPool gives the free memory of a private pool back to the device, and says whether the pool has none left.
	EmptyPool(pool blocks.Pool) (bool, error)
}

// emptyPools gives back the free memory of the pools that nobody uses any more, and forgets those that have none left.
func (g *gpu) emptyPools() {
	emptier, ok := g.alloc.(poolEmptier)
	if !ok || g.broken || g.meter.capturing {
		return
	}
	for id, pool := range g.pools.numbers {
		if g.pools.users[pool] > 0 {
			continue
		}
		none, err := emptier.EmptyPool(pool)
		if err != nil {
			g.complain("empty a private pool", err)
		} else if none {
			delete(g.pools.numbers, id)
			delete(g.pools.users, pool)
		}
	}
}
