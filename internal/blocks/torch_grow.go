package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// grow takes memory for r from the device. As long as the device is full it releases more and more of the cache. It returns none if even
// that did not help.
func (t *Torch) grow(r *request) (int32, error) {
	if t.lender.capturing {
		return t.newSegment(r)
	}
	if t.conf.GCThreshold > 0 {
		if err := t.collectGarbage(); err != nil {
			return none, err
		}
	}
	b, err := t.newSegment(r)
	if b != none || err != nil {
		return b, err
	}
	if t.yield != nil {
		yielding := t.yield(t.segmentSize(r.size))
		if b, err = t.newSegment(r); b != none {
			return b, nil
		}
		if err != nil || t.hasty {
			return none, errors.Join(err, yielding)
		}
	}
	if t.conf.MaxSplitSize > 0 {
		if released, err := t.releaseOversize(r); err != nil {
			return none, err
		} else if released {
			if b, err = t.newSegment(r); b != none || err != nil {
				return b, err
			}
		}
	}
	if err := t.Empty(); err != nil {
		return none, err
	}
	t.stats.Retries++
	return t.newSegment(r)
}

// newSegment takes a new segment from the device as a free block in no lane. It returns none when the device is full.
func (t *Torch) newSegment(r *request) (int32, error) {
	size := t.segmentSize(r.size)
	if t.limit > 0 && size > t.limit-t.stats.Reserved {
		return none, nil
	}
	if t.conf.Expandable {
		return t.growExpandable(r)
	}
	b, err := t.takeSegment(r, size)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return none, nil
	}
	return b, err
}

// segmentSize returns the bytes to take from the device for a block of size bytes.
func (t *Torch) segmentSize(size int64) int64 {
	switch {
	case size <= smallSize:
		return smallSegment
	case size < minLarge:
		return t.conf.LargeSegment
	}
	return roundUp(size, roundLarge)
}

// takeSegment takes size bytes from the device as one free block in no lane.
func (t *Torch) takeSegment(r *request, size int64) (int32, error) {
	p, err := t.dev.MemAlloc(size)
	if err != nil {
		return none, fmt.Errorf("allocate a segment: %w", err)
	}
	t.stats.reserve(size)
	return t.store.add(block{
		ptr: p, size: size, stream: r.stream, pool: r.pool, prev: none, next: none, segment: none, mapped: true,
	}), nil
}

// Empty implements Allocator: it waits for all events and releases every segment that is wholly free, and every free page of expandable
// segments. Private pools keep theirs: they may belong to a graph that will run again. During a capture it does nothing.
func (t *Torch) Empty() error {
	if t.lender.capturing {
		return nil
	}
	if err := t.lender.synchronize(); err != nil {
		return err
	}
	if err := t.releaseFree(t.pools[1]); err != nil {
		return err
	}
	return errors.Join(t.releaseFree(t.pools[0]), t.emptyOutside())
}

// Idle returns the addresses of the segments from MemAlloc that are wholly free, in the order in which Empty releases them. It first frees
// the blocks whose events have passed; ok is false if Empty would have to wait for others.
func (t *Torch) Idle() (idle []cuda.Ptr, ok bool, err error) {
	if err := t.lender.process(); err != nil {
		return nil, false, err
	}
	if len(t.lender.queues) > 0 {
		return nil, false, nil
	}
	for _, p := range [2]*torchPool{t.pools[1], t.pools[0]} {
		for _, l := range p.lanes {
			for at := l.free.first(); l.free.valid(at); at = l.free.next(at) {
				if f := l.free.at(at); t.releasable(f.id) {
					idle = append(idle, f.ptr)
				}
			}
		}
	}
	return idle, true, nil
}

// releaseFree releases the free memory of a pool, in the order of its lanes.
func (t *Torch) releaseFree(p *torchPool) error {
	for _, l := range p.lanes {
		var mapped []int32
		for at := l.free.first(); l.free.valid(at); {
			id := l.free.at(at).id
			b := t.store.at(id)
			switch {
			case b.segment != none:
				mapped = append(mapped, id)
			case !b.split():
				if err := t.releaseSegment(id, l); err != nil {
					return err
				}
				at = l.free.onward(at)
				continue
			}
			at = l.free.next(at)
		}
		for _, id := range mapped {
			if err := t.unmapFree(id, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseSegment releases the segment of a free, unsplit block to the device.
func (t *Torch) releaseSegment(id int32, l *lane) error {
	b := t.store.at(id)
	if err := t.dev.MemFree(b.ptr); err != nil {
		return fmt.Errorf("free a segment: %w", err)
	}
	l.free.remove(b.size, b.ptr)
	t.stats.Reserved -= b.size
	t.store.remove(id)
	return nil
}

// releaseOversize releases free blocks above the split limit, one that is large enough for r or several together, and reports whether that
// was enough.
func (t *Torch) releaseOversize(r *request) (bool, error) {
	want := max(r.size, t.conf.MaxSplitSize)
	set := &r.lane.free
	at := set.seek(want, 0)
	if set.valid(at) && t.releasable(set.at(at).id) {
		return true, t.releaseSegment(set.at(at).id, r.lane)
	}
	released := int64(0)
	for at = set.before(at); set.valid(at) && released < want && set.at(at).size >= t.conf.MaxSplitSize; at = set.before(at) {
		id := set.at(at).id
		if !t.releasable(id) {
			continue
		}
		released += set.at(at).size
		if err := t.releaseSegment(id, r.lane); err != nil {
			return false, err
		}
	}
	return released >= want, nil
}

// releasable reports whether a free block is a whole segment from MemAlloc.
func (t *Torch) releasable(id int32) bool {
	b := t.store.at(id)
	return b.segment == none && !b.split()
}

// collectGarbage releases the oldest unsplit large blocks once more than the threshold is reserved.
func (t *Torch) collectGarbage() error {
	threshold := int64(t.conf.GCThreshold * float64(t.limit))
	target := t.stats.Reserved - threshold
	if target <= 0 {
		return nil
	}
	large := t.pools[1]
	age, count := t.ages(large)
	for reclaimed, freed := int64(0), true; reclaimed < target && freed && count > 0; {
		bar := float64(age) / float64(count)
		freed = false
		for _, l := range large.lanes {
			for at := l.free.first(); l.free.valid(at); {
				id := l.free.at(at).id
				b := t.store.at(id)
				blockAge := large.searches - b.gcBase
				if b.split() || b.segment != none || float64(blockAge) < bar {
					at = l.free.next(at)
					continue
				}
				freed = true
				reclaimed += b.size
				age -= blockAge
				count--
				if err := t.releaseSegment(id, l); err != nil {
					return err
				}
				at = l.free.onward(at)
			}
		}
	}
	return nil
}

// ages adds up the ages of the unsplit free blocks of a pool and counts them.
func (t *Torch) ages(p *torchPool) (sum int64, count int64) {
	for _, l := range p.lanes {
		for at := l.free.first(); l.free.valid(at); at = l.free.next(at) {
			if b := t.store.at(l.free.at(at).id); !b.split() {
				sum += p.searches - b.gcBase
				count++
			}
		}
	}
	return sum, count
}
