package blocks

import (
	"errors"
	"slices"

	"gm/internal/cuda"
)

// SetHasty has requests that find no room fail at once, or not: nothing is waited for and no cache is released for them, but for idle pieces in
// place of which PyTorch's allocator takes memory for small requests. It is for callers that can free memory in the order of the stream, and
// then ask again.
func (s *Stitch) SetHasty(on bool) { s.hasty, s.torch.hasty = on, on }

// yield releases idle pieces of n bytes, or as many as there are, to the device, the smallest first: at first those that the device is known to
// be done with, then others, for which it waits. During a capture it does nothing.
func (s *Stitch) yield(n int64) error {
	if s.capturing() {
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
	for _, wait := range [...]bool{false, true} {
		for _, h := range s.heaps {
			if n <= 0 || h.idle.empty() {
				continue
			}
			if wait {
				errs = append(errs, s.wait(h))
			}
			released, err := s.yieldFrom(h, n)
			errs = append(errs, err)
			n -= released
		}
	}
	return errors.Join(errs...)
}

// yieldFrom releases idle pieces of a heap that the device is done with, n bytes or as many as there are, and returns their bytes.
func (s *Stitch) yieldFrom(h *heap, n int64) (int64, error) {
	var ids []int32
	var found, released int64
	for id := h.idle.from(cuda.Granularity, 0); id != none && found < n; id = h.idle.from(s.pieces[id].size, id+1) {
		if p := &s.pieces[id]; p.epoch < h.passing.passed {
			ids = append(ids, id)
			found += p.size
		}
	}
	var errs []error
	for _, id := range ids {
		size := s.pieces[id].size
		err := errors.Join(s.undoMappings(slices.Clone(s.pieces[id].mappings)), s.release(id))
		if s.pieces[id].heap == none {
			released += size
		}
		errs = append(errs, err)
	}
	return released, errors.Join(errs...)
}
