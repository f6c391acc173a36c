package column

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"gm/internal/unnamed"
)

// Source is a file that can be read at any offset, as Parquet must be: its footer comes last.
type Source struct {
	io.ReaderAt
	file   *os.File
	size   int64
	name   string
	shared bool // the file is the process's standard input, which is left open
	once   bool // the name cannot be opened again for the same bytes
}

// StandardInput is the name of the source that is standard input.
const StandardInput = "standard input"

// OpenSource opens the named file, or standard input for "-" or "". A regular file is read in place, standard input
// from its current offset. A pipe is first moved into an unnamed temporary file, so that it takes disk space in the
// directory for temporary files, but no memory. A terminal is refused.
func OpenSource(name string) (*Source, error) {
	if name == "" || name == "-" {
		return openFile(os.Stdin, StandardInput, true)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	s, err := openFile(file, name, false)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func openFile(file *os.File, name string, shared bool) (*Source, error) {
	if term.IsTerminal(int(file.Fd())) {
		return nil, fmt.Errorf("%s is a terminal: name a file, or use a pipe", name)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return spool(file, name, shared)
	}
	start, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	size := max(0, info.Size()-start)
	return &Source{ReaderAt: io.NewSectionReader(file, start, size), file: file, size: size, name: name, shared: shared, once: shared}, nil
}

// spool moves the contents of a pipe into a temporary file.
func spool(pipe *os.File, name string, shared bool) (*Source, error) {
	s, err := temporary(name, func(file *os.File) (int64, error) { return drain(file, pipe) })
	if err != nil {
		return nil, fmt.Errorf("spool %s: %w", name, err)
	}
	if !shared {
		if err := pipe.Close(); err != nil {
			return nil, errors.Join(fmt.Errorf("spool %s: %w", name, err), s.Close())
		}
	}
	return s, nil
}

// NewTemporary returns what write writes, as a source of a name for errors. It is kept in an unnamed temporary file.
func NewTemporary(name string, write func(io.Writer) error) (*Source, error) {
	return temporary(name, func(file *os.File) (int64, error) {
		if err := write(file); err != nil {
			return 0, err
		}
		return file.Seek(0, io.SeekCurrent)
	})
}

// temporary makes a source of an unnamed temporary file. fill fills it and returns its size.
func temporary(name string, fill func(*os.File) (int64, error)) (*Source, error) {
	file, err := unnamed.Open("")
	if err != nil {
		return nil, err
	}
	size, err := fill(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Source{ReaderAt: file, file: file, size: size, name: name, once: true}, nil
}

// Size returns the number of bytes.
func (s *Source) Size() int64 { return s.size }

// Name returns the name of the source in errors.
func (s *Source) Name() string { return s.name }

// Once reports whether the source cannot be opened again by its name: it is standard input, or was a pipe.
func (s *Source) Once() bool { return s.once }

// Until makes all reads fail with the error of ctx once ctx is done, so that readers of the source stop.
func (s *Source) Until(ctx context.Context) { s.ReaderAt = &cancelled{s.ReaderAt, ctx} }

type cancelled struct {
	io.ReaderAt
	ctx context.Context
}

// ReadAt implements io.ReaderAt.
func (c *cancelled) ReadAt(b []byte, at int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.ReaderAt.ReadAt(b, at)
}

// Close releases the source.
func (s *Source) Close() error {
	if s.shared {
		return nil
	}
	return s.file.Close()
}
