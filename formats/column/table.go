package column

import (
	"errors"
	"fmt"
	"io"
)

// Rules checks the rows of a file, batch by batch, as they are read or written.
type Rules[B any] interface {
	Check(*B) error
	Close() error // checks the rules that depend on the whole file
}

// Table describes files of one kind, whose batches are of type B and whose metadata is of type M.
type Table[B, M any] struct {
	Schema  Schema
	Fields  func(*B) []Field
	Entries func(*M) []Entry
	Rules   func(*M) (Rules[B], error) // fails if the metadata breaks a rule; the rules may read the metadata later
}

// Reader reads a file of one kind and checks it against the rules. It is not safe for concurrent use.
type Reader[B, M any] struct {
	*reader
	meta  M
	batch B
	rules Rules[B]
}

// Open opens the named file, or standard input for "-" or "". A pipe is spooled into an unnamed temporary file; a
// terminal is refused. Close must be called.
func (t *Table[B, M]) Open(name string) (*Reader[B, M], error) {
	source, err := OpenSource(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Schema.Name, err)
	}
	r, err := t.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	r.close = source.Close
	return r, nil
}

// NewReader reads a file of size bytes. The name is for errors.
func (t *Table[B, M]) NewReader(src io.ReaderAt, size int64, name string) (*Reader[B, M], error) {
	r := &Reader[B, M]{}
	var err error
	if r.reader, err = newReader(src, size, name, t.Schema, t.Fields(&r.batch)); err != nil {
		return nil, err
	}
	if err = r.metadata(t.Entries(&r.meta)); err == nil {
		if r.rules, err = t.Rules(&r.meta); err != nil {
			err = r.Wrap(fmt.Errorf("metadata: %w", err))
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Meta returns the file's metadata.
func (r *Reader[B, M]) Meta() M { return r.meta }

// Next returns the next rows, after checking them against the rules. They are valid until Next is called again. It
// returns io.EOF after the last row.
func (r *Reader[B, M]) Next() (*B, error) {
	_, err := r.next()
	switch {
	case err == io.EOF:
		if err := r.rules.Close(); err != nil {
			return nil, r.fail(err)
		}
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	if err := r.rules.Check(&r.batch); err != nil {
		return nil, r.fail(err)
	}
	return &r.batch, nil
}

// Writer writes a file of one kind and checks it against the rules. It is not safe for concurrent use.
type Writer[B, M any] struct {
	*writer
	table *Table[B, M]
	meta  M
	batch B
	rules Rules[B]
	err   error
}

// NewWriter starts a file. Nothing is written before the first row group is full. The first Write, or Close, returns
// errors about the metadata.
func (t *Table[B, M]) NewWriter(w io.Writer, meta M) *Writer[B, M] {
	out := &Writer[B, M]{table: t, meta: meta}
	if out.writer, out.err = newWriter(w, t.Schema, t.Fields(&out.batch)); out.err == nil {
		if out.rules, out.err = t.Rules(&out.meta); out.err != nil {
			out.err = fmt.Errorf("metadata: %w", out.err)
		}
	}
	if out.err != nil {
		out.err = out.wrap(out.err)
	}
	return out
}

func (w *Writer[B, M]) wrap(err error) error {
	return fmt.Errorf("write %s: %w", w.table.Schema.Name, err)
}

// Meta returns the file's metadata, which may be changed until Close.
func (w *Writer[B, M]) Meta() *M { return &w.meta }

// Write adds rows, whose codes are those of Strings. It fails if they break a rule; the file is then unusable. The
// batch may be reused.
func (w *Writer[B, M]) Write(b *B) error {
	if w.err != nil {
		return w.err
	}
	w.batch = *b
	err := w.even()
	if err == nil {
		err = w.rules.Check(b)
	}
	if err == nil {
		err = w.write()
	}
	if err != nil {
		w.err = w.wrap(err)
	}
	return w.err
}

// Close writes the remaining rows and the footer. It does not close the underlying writer.
func (w *Writer[B, M]) Close() error {
	if w.err != nil {
		return w.err
	}
	err := w.rules.Close()
	if err == nil {
		err = w.finish(metadata(w.table.Entries(&w.meta)))
	}
	if err != nil {
		w.err = w.wrap(err)
		return w.err
	}
	w.err = w.wrap(errors.New("closed already"))
	return nil
}
