package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// passing is the progress of a stream on the device. Each free belongs to the current epoch, which the next event ends. The device is done
// with memory that was freed in an epoch once the event that ended the epoch, or a later event, has passed.
type passing struct {
	epoch  int64
	frees  int             // in this epoch
	passed int64           // epochs before this one are over on the device
	events []ended         // those of epochs that are not known to be over, in order
	seen   map[int32]int64 // by heap: what this stream runs from now on runs after the epochs of that heap before this one
}

type ended struct {
	epoch int64
	event cuda.Event
}

// mark ends the current epoch of a heap.
func (s *Stitch) mark(h *heap) error {
	event, err := s.dev.EventRecord(h.stream)
	if err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	h.passing.events = append(h.passing.events, ended{h.passing.epoch, event})
	h.passing.epoch++
	h.passing.frees = 0
	return nil
}

// freesOfEpoch is the number of frees in an epoch. With fewer, memory is known to be unused sooner, but there are more events.
const freesOfEpoch = 64

// markSome ends the epoch of a heap after some frees, if there are other heaps that could take its memory.
func (s *Stitch) markSome(h *heap) error {
	if h.passing.frees%freesOfEpoch != 0 || len(s.heaps) == 1 || s.capturing() {
		return nil
	}
	return errors.Join(s.observe(h), s.mark(h))
}

// observe queries which epochs of a heap are over.
func (s *Stitch) observe(h *heap) error {
	p := &h.passing
	for len(p.events) > 0 {
		over, err := s.dev.EventQuery(p.events[0].event)
		if err != nil {
			return fmt.Errorf("query an event: %w", err)
		}
		if !over {
			return nil
		}
		if err := s.forget(h, 1); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the first n events of a heap, which have passed.
func (s *Stitch) forget(h *heap, n int) error {
	var errs []error
	p := &h.passing
	for _, e := range p.events[:n] {
		p.passed = e.epoch + 1
		if err := s.dev.EventDestroy(e.event); err != nil {
			errs = append(errs, fmt.Errorf("destroy an event: %w", err))
		}
	}
	p.events = append(p.events[:0], p.events[n:]...)
	return errors.Join(errs...)
}

// await makes the stream of heap to wait, on the device, until heap from is done with what it freed in an epoch.
func (s *Stitch) await(to, from *heap, epoch int64) error {
	if epoch < max(to.passing.seen[from.number], from.passing.passed) {
		return nil
	}
	if epoch == from.passing.epoch {
		if err := s.mark(from); err != nil {
			return err
		}
	}
	for _, e := range from.passing.events {
		if e.epoch < epoch {
			continue
		}
		if err := s.dev.StreamWaitEvent(to.stream, e.event); err != nil {
			return fmt.Errorf("wait for an event: %w", err)
		}
		if to.passing.seen == nil {
			to.passing.seen = map[int32]int64{}
		}
		to.passing.seen[from.number] = e.epoch + 1
		return nil
	}
	panic("BUG: an epoch has no event")
}

// pass moves an idle piece to another heap.
func (s *Stitch) pass(id int32, to *heap) error {
	p := &s.pieces[id]
	from := s.heaps[p.heap]
	if err := s.await(to, from, p.epoch); err != nil {
		return err
	}
	from.idle.remove(p.size, id)
	s.move(from, p, none)
	s.move(to, p, s.mappingOn(to, p, none))
	p.heap, p.epoch = to.number, to.passing.epoch
	to.idle.add(p.size, id)
	return nil
}

// fetch moves idle pieces of other heaps to a heap, n bytes or as many as there are, first those that need no waiting. It moves none if
// they and the free memory of the device together have less than n bytes. It skips a stream that fails.
func (s *Stitch) fetch(to *heap, n int64) error {
	var errs []error
	available, _, err := s.dev.MemInfo()
	if err != nil {
		errs, available = append(errs, fmt.Errorf("read the free memory of the device: %w", err)), n
	}
	for _, from := range s.heaps {
		if from != to {
			s.settle(from)
			errs = append(errs, s.observe(from))
			available += from.idle.bytes()
		}
	}
	if available < n {
		return errors.Join(errs...)
	}
	for _, over := range [...]bool{true, false} {
		for _, from := range s.heaps {
			if from == to || from.idle.empty() {
				continue
			}
			got, err := s.fetchFrom(to, from, n, over)
			errs = append(errs, err)
			if n -= got; n <= 0 {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

// fetchFrom moves idle pieces of n bytes from one heap to another, the largest first, and returns their bytes. If over is set it moves only
// pieces whose stream is known to be done with them.
func (s *Stitch) fetchFrom(to, from *heap, n int64, over bool) (int64, error) {
	var ids []int32
	var found, got int64
	for id := from.idle.last(); id != none && found < n; id = from.idle.before(s.pieces[id].size, id) {
		if p := &s.pieces[id]; !over || p.epoch < from.passing.passed {
			ids = append(ids, id)
			found += p.size
		}
	}
	for _, id := range ids {
		if err := s.pass(id, to); err != nil {
			return got, err
		}
		got += s.pieces[id].size
	}
	return got, nil
}

// triesOfReclaim is how many places of a size are examined whose pieces other streams may have taken.
const triesOfReclaim = 128

// reclaim fetches the pieces of a place of class c back from the heaps that took them, if they are idle there, and takes the place. It
// returns none if there is no such place.
func (s *Stitch) reclaim(h *heap, c *class) (int32, error) {
	if len(s.heaps) == 1 || s.capturing() {
		return none, nil
	}
	if id, err := s.reclaimIdle(h, c); id != none || err != nil {
		return id, err
	}
	for _, other := range s.heaps {
		s.settle(other)
	}
	return s.reclaimIdle(h, c)
}

// reclaimIdle is reclaim without joining the warm blocks of other heaps first.
func (s *Stitch) reclaimIdle(h *heap, c *class) (int32, error) {
	rank := c.nextFree(0)
	for tries := 0; tries < triesOfReclaim && rank != none; tries++ {
		id := c.places[rank]
		rank = c.nextFree(rank + 1)
		p := &s.places[id]
		away, ok := s.survey(h, p)
		if !ok {
			continue
		}
		for _, piece := range away {
			if err := s.pass(piece, h); err != nil {
				return none, err
			}
		}
		s.take(h, stretch{p.ptr, p.size, p.region})
		return id, nil
	}
	return none, nil
}

// survey reports whether the memory of a place is free, or would be with the idle pieces of other heaps that it returns.
func (s *Stitch) survey(h *heap, p *place) (away []int32, ok bool) {
	r := &s.regions[p.region]
	if r.heap != h.number || p.ptr < r.ptr || p.ptr+cuda.Ptr(p.size) > r.ptr+cuda.Ptr(r.end) {
		return nil, false
	}
	at, n := p.ptr, p.size
	for n > 0 {
		i := r.mappingAt[(at-r.ptr)/cuda.Granularity]
		if i == none {
			return nil, false
		}
		m := &s.mappings[i]
		if m.dead {
			return nil, false
		}
		q := &s.pieces[m.piece]
		part := min(n, q.size-int64(at-m.ptr))
		switch {
		case q.used == q.size:
			return nil, false
		case q.heap == h.number:
			if !s.isFree(h, q, int64(at-m.ptr), part) {
				return nil, false
			}
		case q.used > 0:
			return nil, false
		default:
			away = append(away, m.piece)
		}
		at += cuda.Ptr(part)
		n -= part
	}
	return away, true
}
