package blocks

import (
	"errors"

	"gm/internal/cuda"
)

// EmptyPool waits for all events and gives back what is free of a private pool, which no graph may use any more. It says whether
// the pool has nothing left; then its number may be used for another.
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

// releaseBare gives back the ranges of a pool that have no memory, as when the device was full when they were begun.
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

// holds says whether there are blocks of a pool, be they in use or free.
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
	return small, large
}

// EmptyPool is that of PyTorch's allocator, which private pools are left to.
func (b *besideTorch) EmptyPool(pool Pool) (bool, error) {
	none, err := b.torch.EmptyPool(pool)
	b.follow()
	return none, err
}
