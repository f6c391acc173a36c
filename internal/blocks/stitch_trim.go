package blocks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// unusedMapping is a mapping that held no block when it was found, and on the clock of extensions when it had last been used.
type unusedMapping struct {
	id   int32
	used int64
}

// trim undoes the least recently used mappings when there are too many: at each extension as many as the last one made, so that no request
// waits for many. It leaves those that the device is not done with. It looks for them a tenth of the limit at a time.
func (s *Stitch) trim() error {
	limit := s.conf.Aliases * (len(s.pieces) - len(s.spare.pieces))
	excess := s.mapped - limit
	if excess <= 0 || s.capturing() {
		return nil
	}
	errs := s.undoOldest(excess)
	if excess = s.mapped - limit; excess <= 0 || len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, h := range s.heaps {
		s.settle(h)
		if h.passing.frees > 0 {
			errs = append(errs, s.mark(h))
		}
		errs = append(errs, s.observe(h))
	}
	s.unused()
	s.oldest = s.oldest[:min(len(s.oldest), max(limit/10, excess))]
	return errors.Join(append(errs, s.undoOldest(excess)...)...)
}

// undoOldest undoes n of the mappings that were found, or as many as are still unused.
func (s *Stitch) undoOldest(n int) (errs []error) {
	done := 0
	for ; done < len(s.oldest) && n > 0; done++ {
		if m := s.oldest[done]; s.isUnused(m.id) && s.mappings[m.id].used == m.used {
			if err := s.undoMapping(m.id); err != nil {
				errs = append(errs, err)
			}
			n--
		}
	}
	s.oldest = append(s.oldest[:0], s.oldest[done:]...)
	return errs
}

// isUnused reports whether a mapping is outside of main regions, holds no block, and the device is done with it.
func (s *Stitch) isUnused(id int32) bool {
	m := &s.mappings[id]
	if m.region == none || s.regions[m.region].main || m.blocks > 0 || s.pieces[m.piece].used > 0 && s.pieces[m.piece].home == id {
		return false
	}
	return m.epoch < s.heaps[s.regions[m.region].heap].passing.passed
}

// unused finds all unused mappings, the least recently used first.
func (s *Stitch) unused() {
	s.oldest = s.oldest[:0]
	for id := range s.mappings {
		if s.isUnused(int32(id)) {
			s.oldest = append(s.oldest, unusedMapping{int32(id), s.mappings[id].used})
		}
	}
	slices.SortFunc(s.oldest, func(a, b unusedMapping) int { return cmp.Compare(a.used, b.used) })
}

// undoUnused waits for all streams and undoes all mappings that hold no block.
func (s *Stitch) undoUnused() error {
	var errs []error
	for _, h := range s.heaps {
		s.settle(h)
		if h.passing.frees > 0 {
			errs = append(errs, s.mark(h))
		}
		errs = append(errs, s.wait(h))
	}
	s.unused()
	return errors.Join(append(errs, s.undoOldest(len(s.oldest))...)...)
}

// wait waits until the stream of a heap is done with all its work.
func (s *Stitch) wait(h *heap) error {
	if err := s.dev.StreamSynchronize(h.stream); err != nil {
		return fmt.Errorf("wait for a stream: %w", err)
	}
	return s.forget(h, len(h.passing.events))
}

// undoMappings undoes mappings. The addresses stay reserved until nothing is mapped in their region.
func (s *Stitch) undoMappings(ids []int32) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.undoMapping(id))
	}
	return errors.Join(errs...)
}

// undoMapping undoes a mapping that holds no block.
func (s *Stitch) undoMapping(id int32) error {
	m := s.mappings[id]
	p, r := &s.pieces[m.piece], &s.regions[m.region]
	if err := s.dev.Unmap(m.ptr, p.size); err != nil {
		return fmt.Errorf("unmap a piece: %w", err)
	}
	if p.home == id {
		h := s.heaps[r.heap]
		s.move(h, p, s.mappingOn(h, p, id))
	}
	p.mappings = slices.DeleteFunc(p.mappings, func(x int32) bool { return x == id })
	first := int(m.ptr-r.ptr) / cuda.Granularity
	for i := range int(p.size / cuda.Granularity) {
		r.mappingAt[first+i] = none
	}
	r.granted--
	s.mappings[id] = mapping{region: none}
	s.spare.mappings = append(s.spare.mappings, id)
	s.mapped--
	return s.shrink(m.region)
}

// Empty implements Allocator: it releases all pieces that are wholly free, once their streams are done with them. During a capture it does
// nothing. What cannot be released stays.
func (s *Stitch) Empty() error {
	if s.capturing() {
		return nil
	}
	errs := []error{s.lender.synchronize()}
	done := make([]bool, len(s.heaps))
	for i, h := range s.heaps {
		s.settle(h)
		err := s.wait(h)
		done[i] = err == nil
		errs = append(errs, err)
	}
	for id := range s.pieces {
		if p := &s.pieces[id]; p.heap != none && p.used == 0 && done[p.heap] {
			errs = append(errs, s.undoMappings(slices.Clone(p.mappings)), s.release(int32(id)))
		}
	}
	for id := range s.regions {
		if r := &s.regions[id]; r.heap != none && r.granted == 0 {
			errs = append(errs, s.shrink(int32(id)))
		}
	}
	return errors.Join(append(errs, s.torch.Empty())...)
}
