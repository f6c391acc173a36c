package torch

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gm/formats/trace"
	"gm/internal/torch/pickle"
)

// requestAlignment is what PyTorch rounds requests to, in bytes (kMinBlockSize of CUDACachingAllocator.cpp).
const requestAlignment = 512

// Import reads a memory snapshot from in, and writes its rows to out and what it says of the whole to out's Meta. The
// name is that of the input, for Meta; warn is called with a line for each kind of oddity that the input has. Import
// does not close out, whose rows are of no use after an error.
//
// Allocations are numbered from 1 in the order of the rows. Segments and blocks that are older than the history come
// first, at the time of its first event, with the tag trace.PreexistingTag: for each device its segments, mapped
// ranges of expandable ones as segment_map, and then its blocks, with a free_requested where that was pending. All
// are in the order of addresses. A block's size is what was asked for, as in all rows; what the allocator added to it
// lies between it and the next one (see initial).
func Import(in io.Reader, name string, out *trace.Writer, warn func(string)) error {
	s := newSnapshot(out)
	s.dec = pickle.NewDecoder(in, s)
	meta := out.Meta()
	meta.Source = "pytorch snapshot " + filepath.Base(name)
	meta.Alignment = requestAlignment
	top, err := s.dec.Decode()
	if err == nil && !s.known {
		if k := top.Kind(); k != pickle.Token {
			return fmt.Errorf("%v is no memory snapshot", k)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read snapshot: %w", err), s.close())
	}
	s.release()
	if err := errors.Join(s.emit(), s.close()); err != nil {
		return err
	}
	s.odd.stacks = s.stacks.left
	s.odd.warn(warn)
	return nil
}

// release drops what only the first pass needs.
func (s *snapshot) release() {
	left := s.stacks.left
	s.dec, s.fields, s.actions, s.pools = nil, nil, nil, nil
	s.stacks = &stacks{left: left}
}

func (s *snapshot) close() error {
	var errs []error
	for _, h := range s.devices {
		errs = append(errs, h.spool.close())
	}
	return errors.Join(errs...)
}
