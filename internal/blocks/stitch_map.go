package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// carryOut creates the new pieces of an extension for a request of n bytes and maps all of its pieces. It returns the addresses for the
// request.
func (s *Stitch) carryOut(h *heap, x *extension, n int64) (stretch, error) {
	var fresh []int32
	var err error
	if x.missing > 0 {
		if fresh, err = s.grow(h, n, x.missing); err != nil {
			return stretch{}, err
		}
	}
	if x.grows {
		end := s.regions[h.main].end
		return stretch{s.regions[h.main].ptr + cuda.Ptr(end-x.missing-x.before), n, h.main}, nil
	}
	all := append(x.pieces, fresh...)
	if x.last != none {
		all = append(all, x.last)
	}
	region := x.region
	if region == none {
		var size int64
		for _, id := range all {
			size += s.pieces[id].size
		}
		if region, err = s.begin(h, size); err != nil {
			return stretch{}, err
		}
	}
	end := s.regions[region].end
	if len(all) == 0 { // undoing old mappings made room
		return stretch{s.regions[region].ptr + cuda.Ptr(end-x.before), n, region}, nil
	}
	if err := s.mapAll(h, region, all); err != nil {
		return stretch{}, err
	}
	if x.region == none && x.before > 0 { // the free end of the first piece
		end += s.pieces[all[0]].size
	}
	return stretch{s.regions[region].ptr + cuda.Ptr(end-x.before), n, region}, nil
}

// grow creates pieces that total size bytes, for a request of n bytes, and maps them in the main region.
func (s *Stitch) grow(h *heap, n, size int64) ([]int32, error) {
	if free, _, err := s.dev.MemInfo(); err != nil {
		return nil, fmt.Errorf("read the free memory of the device: %w", err)
	} else if size > free {
		return nil, fmt.Errorf("create pieces of %d bytes: %w", size, cuda.ErrOutOfMemory)
	}
	main, err := s.mainRegion(h, size)
	if err != nil {
		return nil, err
	}
	var fresh []int32
	for size > 0 {
		id, err := s.create(h, min(size, s.pieceSize(n)))
		if err != nil {
			return nil, errors.Join(err, s.releaseAll(fresh))
		}
		fresh = append(fresh, id)
		size -= s.pieces[id].size
	}
	if err := s.mapAll(h, main, fresh); err != nil {
		return nil, errors.Join(err, s.releaseAll(fresh))
	}
	return fresh, nil
}

func (s *Stitch) releaseAll(pieces []int32) error {
	var errs []error
	for _, id := range pieces {
		errs = append(errs, s.release(id))
	}
	return errors.Join(errs...)
}

// pieceSize returns the size of new pieces for a request of n bytes.
func (s *Stitch) pieceSize(n int64) int64 {
	size := s.conf.PieceMin
	for size < s.conf.PieceMax && (size*s.conf.Parts < n || 2*size*s.conf.Pieces <= s.stats.Reserved) {
		size *= 2
	}
	return min(size, s.conf.PieceMax)
}

// mapAll maps pieces one after the other at the end of a region. Pieces that had no home have it there. On an error nothing stays mapped,
// except what cannot be unmapped.
func (s *Stitch) mapAll(h *heap, id int32, pieces []int32) error {
	r := &s.regions[id]
	start, end := r.end, r.end
	var err error
	mapped := 0
	for ; mapped < len(pieces) && err == nil; mapped++ {
		p := &s.pieces[pieces[mapped]]
		if err = s.dev.Map(r.ptr+cuda.Ptr(end), p.handle); err != nil {
			err = fmt.Errorf("map a piece: %w", err)
			break
		}
		end += p.size
	}
	at, size := r.ptr+cuda.Ptr(start), end-start
	if err == nil {
		if err = s.dev.SetAccess(at, size); err != nil {
			err = fmt.Errorf("set access to pieces: %w", err)
		}
	}
	if err != nil {
		undoing := s.unmapNew(at, size)
		if undoing == nil {
			return err
		}
		err = errors.Join(err, undoing)
	}
	for _, p := range pieces[:mapped] {
		s.show(h, id, p, err != nil)
	}
	return err
}

// errCapturing is why mappings cannot be undone now.
var errCapturing = errors.New("not while a CUDA graph is captured")

// unmapNew undoes mappings that were just made.
func (s *Stitch) unmapNew(at cuda.Ptr, size int64) error {
	if size == 0 {
		return nil
	}
	err := errCapturing
	if !s.capturing() {
		err = s.dev.Unmap(at, size)
	}
	if err != nil {
		return fmt.Errorf("unmap pieces: %w", err)
	}
	return nil
}

// show adds the mapping of a piece that is now also mapped at the end of a region.
func (s *Stitch) show(h *heap, id, number int32, dead bool) {
	mappingID := int32(len(s.mappings))
	if k := len(s.spare.mappings) - 1; k >= 0 {
		mappingID, s.spare.mappings = s.spare.mappings[k], s.spare.mappings[:k]
	} else {
		s.mappings = append(s.mappings, mapping{})
	}
	r, p := &s.regions[id], &s.pieces[number]
	s.mappings[mappingID] = mapping{ptr: r.ptr + cuda.Ptr(r.end), piece: number, region: id, epoch: -1, used: s.clock, dead: dead}
	s.mapped++
	r.granted++
	r.end += p.size
	for range p.size / cuda.Granularity {
		r.mappingAt = append(r.mappingAt, mappingID)
	}
	p.mappings = append(p.mappings, mappingID)
	if p.home == none && !dead {
		s.move(h, p, mappingID)
	}
}
