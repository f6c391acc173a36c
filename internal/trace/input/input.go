// Package input opens what the tools take as a trace: a trace in Parquet, or a recording of any format that gmtrace import reads.
package input

import (
	"errors"
	"fmt"
	"io"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/importer"
)

// Open opens the named file, or standard input for "-" or "", as a trace. Its content decides what it is. Parquet is returned as it is,
// also if it is no trace, so that a command can take another kind of file in its place. A recording that [importer] knows is imported
// into an unnamed temporary file, and compressed Parquet is unpacked into one. Reading stops at an interrupt of the command.
func Open(c *cli.Context, name string) (*column.Source, error) {
	if err := refuseFolder(name); err != nil {
		return nil, err
	}
	source, err := column.OpenSource(name)
	if err != nil {
		return nil, err
	}
	source.Until(c.Context())
	progress := c.Progress("read "+source.Name(), source.Size())
	defer progress.End()
	raw, err := importer.Open(progress.Reader(io.NewSectionReader(source, 0, source.Size())), source.Name())
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	if raw.Format == importer.Parquet && !raw.Packed() {
		return source, raw.Close()
	}
	made, err := column.NewTemporary(source.Name(), func(out io.Writer) error { return convert(c, raw, out) })
	if err = errors.Join(err, raw.Close(), source.Close()); err != nil {
		return nil, err
	}
	made.Until(c.Context())
	return made, nil
}

// convert writes a trace from a recording.
func convert(c *cli.Context, raw *importer.Input, out io.Writer) error {
	if raw.Format == importer.Parquet {
		_, err := io.Copy(out, raw)
		return err
	}
	w := trace.NewWriter(out, trace.Meta{})
	if err := raw.Import(w, func(text string) { c.Warn("%s", text) }); err != nil {
		return err
	}
	return w.Close()
}

// Trace is an open trace that is read once, and its file.
type Trace struct {
	*trace.Reader
	source *column.Source
}

// OpenTrace opens a trace as Open does, for one reading.
func OpenTrace(c *cli.Context, name string) (*Trace, error) {
	source, err := Open(c, name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return NewTrace(source)
}

// NewTrace reads a trace from a source, which it takes over: it is closed with the trace, and if there is an error.
func NewTrace(source *column.Source) (*Trace, error) {
	r, err := trace.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	return &Trace{r, source}, nil
}

// Close closes the reader and the file.
func (t *Trace) Close() error { return errors.Join(t.Reader.Close(), t.source.Close()) }
