package schedule

import (
	"io"

	"gm/formats/column"
)

// Reader reads a schedule and checks it against the rules of [Validator].
type Reader = column.Reader[Batch, Meta]

// Writer writes a schedule and checks it against the rules of [Validator].
type Writer = column.Writer[Batch, Meta]

// Open opens the named schedule, or standard input for "-" or "". A pipe is spooled into an unnamed temporary file; a
// terminal is refused. The reader must be closed.
func Open(name string) (*Reader, error) { return table().Open(name) }

// NewReader reads a schedule of size bytes. The name is for errors.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return table().NewReader(src, size, name)
}

// NewWriter starts a schedule. Nothing is written before the first row group is full. Rows are checked against the
// metadata given here: Operators, Tensors and HostPeak are final; the rest may be changed through Meta until Close.
func NewWriter(w io.Writer, meta Meta) *Writer { return table().NewWriter(w, meta) }

// Each calls visit with every action of a schedule that is still to be read. The action is valid until visit returns; an error of visit
// ends the reading and is returned unchanged.
func Each(r *Reader, visit func(a *Action) error) error { return column.Each(r, visit) }
