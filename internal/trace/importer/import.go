package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gm/formats/trace"
	"gm/internal/gunzip"
	"gm/internal/torch/snapshot"
)

// Input is a recording, decompressed, whose format was detected from its first bytes.
type Input struct {
	Format Format

	src   *bufio.Reader
	ahead *readAhead // nil if the input is not compressed
	name  string
	head  []byte
}

// Open reads the start of an input and detects its format. The input is read once, from start to end, so that it may be a pipe, and a
// caller may count the bytes to show progress. The name is for metadata and errors. Close must be called.
func Open(in io.Reader, name string) (*Input, error) {
	i := &Input{src: bufio.NewReaderSize(in, readBlock), name: name}
	if err := i.open(); err != nil {
		return nil, i.wrap(errors.Join(err, i.Close()))
	}
	return i, nil
}

func (i *Input) open() (err error) {
	if i.head, err = peek(i.src); err != nil {
		return err
	}
	if bytes.HasPrefix(i.head, []byte("\x1f\x8b")) {
		unpacked, err := gunzip.NewReader(i.src)
		if err != nil {
			return err
		}
		i.ahead = newReadAhead(unpacked)
		i.src = bufio.NewReaderSize(i.ahead, readBlock)
		if i.head, err = peek(i.src); err != nil {
			return err
		}
	}
	i.Format = Detect(i.head)
	return nil
}

// Packed reports whether the input is compressed.
func (i *Input) Packed() bool { return i.ahead != nil }

// Read implements io.Reader: it returns the input, decompressed.
func (i *Input) Read(b []byte) (int, error) { return i.src.Read(b) }

// Close ends the decompression. It does not close the reader that Open was given.
func (i *Input) Close() error {
	if i.ahead != nil {
		i.ahead.stop()
	}
	return nil
}

func (i *Input) wrap(err error) error { return fmt.Errorf("%s: %w", i.name, err) }

// Import writes the rows of the input to out, and its metadata to out's Meta. Errors name the input, and the line or byte. warn is called
// with one line for each kind of oddity that was corrected. Import does not close out, which is unusable after an error.
func (i *Input) Import(out *trace.Writer, warn func(string)) error {
	if err := i.read(out, warn); err != nil {
		return i.wrap(err)
	}
	return nil
}

// Import imports a recording of any known format from in: it opens an [Input], imports it, and closes it.
func Import(in io.Reader, name string, out *trace.Writer, warn func(string)) error {
	i, err := Open(in, name)
	if err != nil {
		return err
	}
	return errors.Join(i.Import(out, warn), i.Close())
}

func (i *Input) read(out *trace.Writer, warn func(string)) error {
	out.Meta().Source = i.Format.String() + " " + filepath.Base(i.name)
	t := &text{lines: newLines(i.src), out: newRows(out, warn)}
	switch i.Format {
	case Snapshot:
		if err := snapshot.Import(i.src, i.name, out, warn); err != nil {
			return err
		}
		return drain(i.src)
	case RMM:
		return t.run(t.rmm)
	case STAlloc:
		return t.run(t.stalloc)
	case MiniMalloc:
		return t.run(t.minimalloc)
	case Plain:
		return t.run(t.plain)
	case Kineto:
		return t.run(func() error { return t.kineto(i.src) })
	case Parquet:
		return errors.New("already Parquet: a gm trace needs no import")
	}
	return unknown(i.head)
}

// drain reads the rest of the input after a snapshot, so that the checksum at the end of compressed data is verified.
func drain(src io.Reader) error {
	_, err := io.Copy(io.Discard, src)
	return err
}

// peek returns the start of src.
func peek(src *bufio.Reader) ([]byte, error) {
	head, err := src.Peek(detectBytes)
	if err == io.EOF {
		err = nil
	}
	return head, err
}

// text imports a format that consists of lines.
type text struct {
	lines *lines
	out   *rows
}

// run reads all lines and writes the remaining rows.
func (t *text) run(read func() error) error {
	if err := read(); err != nil {
		return err
	}
	return t.out.finish()
}

// fail returns an error about the current line.
func (t *text) fail(format string, args ...any) error {
	return t.at(fmt.Errorf(format, args...))
}

// at adds the number of the current line to err.
func (t *text) at(err error) error {
	return fmt.Errorf("line %d: %w", t.lines.number, err)
}
