package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// expandable is a reserved range of addresses, larger than the device, into which pages are mapped as they are needed.
// Its blocks cover all of it, those without memory included.
type expandable struct {
	base  cuda.Ptr
	page  int64
	pages map[int64]cuda.Handle // by number from base
}

// preferExpandable moves at from the best fit by size to the block that can grow the least: a block at the end of the mapped pages counts
// with the size that it can grow to.
func (t *Torch) preferExpandable(set *freeSet, at spot) spot {
	reach := func(at spot) (int64, bool) {
		b := t.store.at(set.at(at).id)
		size := b.size
		if b.next != none && !t.store.at(b.next).mapped {
			size += t.store.at(b.next).size
		}
		return size, b.segment != none
	}
	size, canGrow := reach(at)
	for next := set.next(at); canGrow && set.valid(next); next = set.next(at) {
		nextSize, nextCanGrow := reach(next)
		if nextSize >= size {
			break
		}
		at, size, canGrow = next, nextSize, nextCanGrow
	}
	return at
}

// skipExpandable moves at to a block outside of expandable segments: with expandable_segments switched off, those that still exist are left
// alone.
func (t *Torch) skipExpandable(set *freeSet, at spot) spot {
	for len(t.expandables) > 0 && set.valid(at) && t.store.at(set.at(at).id).segment != none {
		at = set.next(at)
	}
	return at
}

// growExpandable returns a free block in no lane, for r, after mapping the pages that it lacks; none when the device is full.
func (t *Torch) growExpandable(r *request) (int32, error) {
	b, err := t.findExpandable(r)
	if err != nil {
		return none, err
	}
	if !t.store.at(b).mapped {
		if ok, err := t.mapFront(b, min(t.store.at(b).size, r.size), r.lane); !ok || err != nil {
			return none, err
		}
	}
	for t.store.at(b).size < r.size {
		missing := r.size - t.store.at(b).size
		next := t.store.at(b).next
		if ok, err := t.mapFront(next, min(missing, t.store.at(next).size), r.lane); !ok || err != nil {
			return none, err
		}
		b = next // into which the block before it was merged
	}
	r.lane.free.remove(t.store.at(b).size, t.store.at(b).ptr)
	return b, nil
}

// findExpandable returns the first of some neighbouring blocks, free or unmapped, that together have room for r: at the lowest unmapped
// block where there is room, counting a free block before it, else in a new range.
func (t *Torch) findExpandable(r *request) (int32, error) {
	set := &r.lane.unmapped
	for at := set.first(); set.valid(at); at = set.next(at) {
		b := set.at(at).id
		if prev := t.store.at(b).prev; prev != none && !t.store.at(prev).used {
			b = prev
		}
		if t.hasRoom(b, r.size) {
			return b, nil
		}
	}
	return t.reserveExpandable(r)
}

func (t *Torch) hasRoom(b int32, size int64) bool {
	for bytes := int64(0); b != none && !t.store.at(b).used; b = t.store.at(b).next {
		if bytes += t.store.at(b).size; bytes >= size {
			return true
		}
	}
	return false
}

// reserveExpandable reserves a range of 9/8 of the device, all of it one unmapped block.
func (t *Torch) reserveExpandable(r *request) (int32, error) {
	_, total, err := t.dev.MemInfo()
	if err != nil {
		return none, fmt.Errorf("read the size of the device: %w", err)
	}
	page := t.conf.LargeSegment
	if t.pools[r.pool].small {
		page = smallSegment
	}
	size := roundUp(max(total+total/8, r.size), page)
	base, err := t.dev.AddressReserve(size)
	if err != nil {
		return none, fmt.Errorf("reserve an expandable segment: %w", err)
	}
	return t.addExpandable(base, size, page, r), nil
}

// addExpandable adds a reserved range as one unmapped block.
func (t *Torch) addExpandable(base cuda.Ptr, size, page int64, r *request) int32 {
	t.expandables = append(t.expandables, &expandable{base: base, page: page, pages: map[int64]cuda.Handle{}})
	b := t.store.add(block{
		ptr: base, size: size, stream: r.stream, pool: r.pool, prev: none, next: none,
		segment: int32(len(t.expandables) - 1),
	})
	r.lane.unmapped.insert(free{ptr: base, id: b})
	return b
}

// mapFront maps pages for the first size bytes of unmapped block b, joins it with its free neighbours and puts it into the lane.
// It returns false when the device is full.
func (t *Torch) mapFront(b int32, size int64, l *lane) (bool, error) {
	at := t.store.at(b)
	e := t.expandables[at.segment]
	mapped := roundUp(size, e.page)
	if ok, err := t.mapPages(e, at.ptr, mapped); !ok || err != nil {
		return false, err
	}
	l.unmapped.remove(0, at.ptr)
	at.mapped = true
	if rest := at.size - mapped; rest > 0 {
		at.size = mapped
		tail := *at
		tail.ptr, tail.size, tail.mapped = at.ptr+cuda.Ptr(mapped), rest, false
		id := t.store.insertAfter(b, tail)
		l.unmapped.insert(free{ptr: tail.ptr, id: id})
	}
	t.freeBlock(b)
	t.stats.reserve(mapped)
	return true, nil
}

// mapPages creates and maps pages for the range. When the device is full, or on an error, it undoes what it did; when the device is full it
// returns false.
func (t *Torch) mapPages(e *expandable, p cuda.Ptr, size int64) (bool, error) {
	first, n := int64(p-e.base)/e.page, size/e.page
	for i := first; i < first+n; i++ {
		h, err := t.dev.Create(e.page)
		if errors.Is(err, cuda.ErrOutOfMemory) {
			return false, t.dropPages(e, first, i)
		} else if err != nil {
			return false, errors.Join(fmt.Errorf("create a page: %w", err), t.dropPages(e, first, i))
		}
		e.pages[i] = h
	}
	mapped := int64(0)
	var err error
	for ; mapped < size && err == nil; mapped += e.page {
		err = t.dev.Map(p+cuda.Ptr(mapped), e.pages[first+mapped/e.page])
	}
	if err == nil {
		if err = t.dev.SetAccess(p, size); err == nil {
			return true, nil
		}
	} else {
		mapped -= e.page
	}
	err = fmt.Errorf("map pages: %w", err)
	if mapped > 0 {
		err = errors.Join(err, t.dev.Unmap(p, mapped))
	}
	return false, errors.Join(err, t.dropPages(e, first, first+n))
}

func (t *Torch) dropPages(e *expandable, first, end int64) error {
	for i := first; i < end; i++ {
		if err := t.dev.Release(e.pages[i]); err != nil {
			return fmt.Errorf("release a page: %w", err)
		}
		delete(e.pages, i)
	}
	return nil
}

// unmapFree releases the whole pages within free block b to the device. The rest of the block, before and after them, stays free.
func (t *Torch) unmapFree(b int32, l *lane) error {
	at := t.store.at(b)
	e := t.expandables[at.segment]
	first := (int64(at.ptr-e.base) + e.page - 1) / e.page
	end := (int64(at.ptr-e.base) + at.size) / e.page
	if first >= end {
		return nil
	}
	if err := t.dev.StreamSynchronize(at.stream); err != nil {
		return fmt.Errorf("wait for a stream before unmapping: %w", err)
	}
	start, size := e.base+cuda.Ptr(first*e.page), (end-first)*e.page
	if err := t.dev.Unmap(start, size); err != nil {
		return fmt.Errorf("unmap pages: %w", err)
	}
	if err := t.dropPages(e, first, end); err != nil {
		return err
	}
	l.free.remove(at.size, at.ptr)
	if before := int64(start - at.ptr); before > 0 {
		t.insertFree(t.store.splitFront(b, before), l)
	}
	if after := t.store.at(b).size - size; after > 0 {
		tail := *t.store.at(b)
		tail.ptr, tail.size = start+cuda.Ptr(size), after
		t.store.at(b).size = size
		t.insertFree(t.store.insertAfter(b, tail), l)
	}
	t.stats.Reserved -= size
	hole := t.store.at(b)
	hole.mapped = false
	t.join(b, hole.prev, l)
	t.join(b, hole.next, l)
	if hole.split() {
		l.unmapped.insert(free{ptr: hole.ptr, id: b})
		return nil
	}
	return t.dropExpandable(b, e)
}

// dropExpandable frees the addresses of an expandable segment that has no memory left; b is all of it.
func (t *Torch) dropExpandable(b int32, e *expandable) error {
	if err := t.dev.AddressFree(e.base, t.store.at(b).size); err != nil {
		return fmt.Errorf("free an expandable segment: %w", err)
	}
	t.store.remove(b)
	return nil
}
