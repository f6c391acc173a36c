package blocks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// trim undoes the mappings that were used longest ago when there are too many, a tenth of them, as far as the device is done with
// them.
func (s *Stitch) trim() error {
	limit := s.conf.Aliases * (len(s.pieces) - len(s.spare.pieces))
	if s.mapped <= limit || s.capturing {
		return nil
	}
	for _, h := range s.heaps {
		s.settle(h)
		if err := errors.Join(s.mark(h), s.observe(h)); err != nil {
			return err
		}
	}
	old := s.unused()
	return s.undoMappings(old[:min(len(old), limit/10)])
}

// unused returns the mappings that no block is in and that the device is done with, the one that was used longest ago first.
func (s *Stitch) unused() []int32 {
	var all []int32
	for id := range s.mappings {
		sl := &s.mappings[id]
		if sl.region == none || sl.blocks > 0 || s.pieces[sl.piece].used > 0 && s.pieces[sl.piece].home == int32(id) {
			continue
		}
		if h := s.heaps[s.regions[sl.region].heap]; sl.epoch < h.passing.passed {
			all = append(all, int32(id))
		}
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(s.mappings[a].used, s.mappings[b].used) })
	return all
}

// undoMappings undoes mappings. The addresses stay reserved until nothing is mapped in their region.
func (s *Stitch) undoMappings(ids []int32) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.undoMapping(id))
	}
	return errors.Join(errs...)
}

// undoMapping undoes a mapping that no block is in.
func (s *Stitch) undoMapping(id int32) error {
	sl := s.mappings[id]
	p, r := &s.pieces[sl.piece], &s.regions[sl.region]
	if p.home == id {
		h := s.heaps[r.heap]
		s.move(h, p, s.mappingOn(h, p, id))
	}
	p.mappings = slices.DeleteFunc(p.mappings, func(x int32) bool { return x == id })
	first := int(sl.ptr-r.ptr) / cuda.Granularity
	for i := range int(p.size / cuda.Granularity) {
		r.mappingAt[first+i] = none
	}
	r.granted--
	s.mappings[id] = mapping{region: none}
	s.spare.mappings = append(s.spare.mappings, id)
	s.mapped--
	if err := s.dev.Unmap(sl.ptr, p.size); err != nil {
		return fmt.Errorf("unmap a piece: %w", err)
	}
	return s.shrink(sl.region)
}

// shrink moves the end of a region before what is no longer mapped there, and gives a region back that holds nothing.
func (s *Stitch) shrink(id int32) error {
	r := &s.regions[id]
	for k := len(r.mappingAt); k > 0 && r.mappingAt[k-1] == none; k-- {
		r.mappingAt = r.mappingAt[:k-1]
	}
	r.end = int64(len(r.mappingAt)) * cuda.Granularity
	if r.granted > 0 {
		return nil
	}
	h := s.heaps[r.heap]
	h.regions = slices.DeleteFunc(h.regions, func(x int32) bool { return x == id })
	r.heap = none
	s.spare.regions = append(s.spare.regions, id)
	if err := s.dev.AddressFree(r.ptr, r.size); err != nil {
		return fmt.Errorf("free addresses: %w", err)
	}
	return nil
}

// Empty implements Allocator: all pieces that are wholly free go back to the device, once all streams are done with them.
func (s *Stitch) Empty() error {
	if err := s.lender.synchronize(); err != nil {
		return err
	}
	for _, h := range s.heaps {
		s.settle(h)
		if err := s.dev.StreamSynchronize(h.stream); err != nil {
			return fmt.Errorf("wait for a stream: %w", err)
		}
		if err := s.forget(h, len(h.passing.events)); err != nil {
			return err
		}
	}
	var errs []error
	for id := range s.pieces {
		if p := &s.pieces[id]; p.heap != none && p.used == 0 {
			errs = append(errs, s.undoMappings(slices.Clone(p.mappings)), s.release(int32(id)))
		}
	}
	errs = append(errs, s.torch.Empty())
	return errors.Join(errs...)
}
