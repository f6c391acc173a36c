package blocks

import (
	"errors"

	"gm/internal/cuda"
)

// EmptyPool waits for all events and releases the free memory of a private pool that no graph may use any more. It reports whether the pool
// has no memory left. Its number may then be used for another pool.
func (t *Torch) EmptyPool(pool Pool) (bool, error) {
	i, ok := t.pairs[pool]
	if !ok {
		return true, nil
	}
	if t.lender.capturing {
		return false, nil
	}
	if err := t.lender.synchronize(); err != nil {
		return false, err
	}
	for _, p := range [2]*torchPool{t.pools[i+1], t.pools[i]} {
		if err := errors.Join(t.releaseFree(p), t.releaseBare(p)); err != nil {
			return false, err
		}
	}
	return !t.holds(i) && !t.holds(i+1), nil
}

// MallocCached is Malloc from what a private pool has free: it takes no memory from the device, and returns 0 if nothing fits.
func (t *Torch) MallocCached(size int64, stream cuda.Stream, pool Pool) cuda.Ptr {
	if _, ok := t.pairs[pool]; !ok || size <= 0 || size > MaxSize {
		return 0
	}
	r := request{size: t.conf.RoundSize(size), stream: stream}
	r.pool = t.half(pool, r.size)
	r.lane = t.pools[r.pool].lane(stream)
	b := t.findFree(&r)
	if b == none {
		return 0
	}
	return t.handOut(b, &r)
}

// releaseBare frees the address ranges of a pool that have no memory, such as those that were reserved when the device was full.
func (t *Torch) releaseBare(p *torchPool) error {
	for _, l := range p.lanes {
		for at := l.unmapped.first(); l.unmapped.valid(at); {
			bare := l.unmapped.at(at)
			b := t.store.at(bare.id)
			if b.split() {
				at = l.unmapped.next(at)
				continue
			}
			if err := t.dropExpandable(bare.id, t.expandables[b.segment]); err != nil {
				return err
			}
			l.unmapped.remove(0, bare.ptr)
			at = l.unmapped.onward(at)
		}
	}
	return nil
}

// holds reports whether a pool has blocks, in use or free.
func (t *Torch) holds(pool int32) bool {
	for _, l := range t.pools[pool].lanes {
		if !l.free.empty() || !l.unmapped.empty() {
			return true
		}
	}
	used := false
	t.index.Each(func(_ cuda.Ptr, id *int32) { used = used || t.store.at(*id).pool == pool })
	return used
}

// Pending returns the bytes in blocks that were freed and that other streams still use: those of small and of large requests.
func (t *Torch) Pending() (small, large int64) {
	for id := range t.lender.events {
		if b := t.store.at(id); b.size <= smallSize {
			small += b.size
		} else {
			large += b.size
		}
	}
	if t.outside != nil {
		small += t.outside.pending()
	}
	return small, large
}

// EmptyPool empties a private pool of PyTorch's allocator, to which all of these are left.
func (b *besideTorch) EmptyPool(pool Pool) (bool, error) {
	none, err := b.torch.EmptyPool(pool)
	b.follow()
	return none, err
}

// MallocCached is [Torch.MallocCached].
func (b *besideTorch) MallocCached(size int64, stream cuda.Stream, pool Pool) cuda.Ptr {
	p := b.torch.MallocCached(size, stream, pool)
	b.follow()
	return p
}
