package snapshot

import (
	"errors"
	"io"
	"path/filepath"

	"gm/formats/trace"
)

// requestAlignment is what PyTorch rounds requests to, in bytes (kMinBlockSize of CUDACachingAllocator.cpp).
const requestAlignment = 512

// Sink takes the rows of a trace in order. A batch is its own only until Write returns.
type Sink interface {
	Write(rows *trace.Batch) error
}

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
	r := newRecording(out.Strings())
	err := r.importOne(in, out, warn)
	meta := out.Meta()
	meta.Source = "pytorch snapshot " + filepath.Base(name)
	r.describe(meta)
	return errors.Join(err, r.close())
}

func (r *recording) importOne(in io.Reader, out Sink, warn func(string)) error {
	end, err := decode(in, r, r)
	if err != nil {
		return err
	}
	if err := r.finish(end); err != nil {
		return err
	}
	return r.write(out, warn)
}
