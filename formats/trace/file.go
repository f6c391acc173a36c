package trace

import (
	"errors"
	"io"

	"gm/formats/column"
)

// Reader reads a trace and checks it against the rules of [Validator].
type Reader = column.Reader[Batch, Meta]

// Writer writes a trace and checks it against the rules of [Validator].
type Writer = column.Writer[Batch, Meta]

// Open opens the named trace, or standard input for "-" or "". A pipe is spooled into an unnamed temporary file; a
// terminal is refused. The reader must be closed.
func Open(name string) (*Reader, error) { return readable().Open(name) }

// NewReader reads a trace of size bytes. The name is for errors.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return readable().NewReader(src, size, name)
}

// ReadSource calls read with a reader that starts at the beginning of the trace in a source. A source can be read several times.
func ReadSource[T any](source *column.Source, read func(*Reader) (T, error)) (result T, err error) {
	r, err := NewReader(source, source.Size(), source.Name())
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return read(r)
}

// NewWriter starts a trace. Nothing is written before the first row group is full. The metadata may be changed through
// Meta until Close.
func NewWriter(w io.Writer, meta Meta) *Writer { return table().NewWriter(w, meta) }
