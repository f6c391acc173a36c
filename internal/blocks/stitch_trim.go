package blocks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// trim undoes the least recently used mappings when there are too many: a tenth of the limit, or the excess if that is more. It leaves
// those that the device is not done with.
func (s *Stitch) trim() error {
	limit := s.conf.Aliases * (len(s.pieces) - len(s.spare.pieces))
	if s.mapped <= limit || s.capturing() {
		return nil
	}
	var errs []error
	for _, h := range s.heaps {
		s.settle(h)
		if h.passing.frees > 0 {
			errs = append(errs, s.mark(h))
		}
		errs = append(errs, s.observe(h))
	}
	old := s.unused()
	return errors.Join(append(errs, s.undoMappings(old[:min(len(old), max(limit/10, s.mapped-limit))]))...)
}

// unused returns the mappings outside of main regions that hold no block and that the device is done with, the least recently used first.
func (s *Stitch) unused() []int32 {
	var all []int32
	for id := range s.mappings {
		m := &s.mappings[id]
		if m.region == none || s.regions[m.region].main || m.blocks > 0 || s.pieces[m.piece].used > 0 && s.pieces[m.piece].home == int32(id) {
			continue
		}
		if h := s.heaps[s.regions[m.region].heap]; m.epoch < h.passing.passed {
			all = append(all, int32(id))
		}
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(s.mappings[a].used, s.mappings[b].used) })
	return all
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
	return errors.Join(append(errs, s.undoMappings(s.unused()))...)
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
