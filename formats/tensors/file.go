package tensors

import (
	"io"

	"gm/formats/column"
)

// Reader reads a table and checks it against the rules of [Validator].
type Reader = column.Reader[Batch, Meta]

// Writer writes a table and checks it against the rules of [Validator].
type Writer = column.Writer[Batch, Meta]

// NewReader reads a table of size bytes. The name is for errors.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return table().NewReader(src, size, name)
}

// NewWriter starts a table. Nothing is written before the first row group is full.
func NewWriter(w io.Writer, meta Meta) *Writer { return table().NewWriter(w, meta) }

// Each calls visit with every tensor of a table that is still to be read. The tensor is valid until visit returns; an error of visit ends
// the reading and is returned unchanged.
func Each(r *Reader, visit func(t *Tensor) error) error { return column.Each(r, visit) }
