package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/klauspost/compress/gzip"

	"gm/formats/trace"
	"gm/internal/torch/snapshot"
)

// Import reads a recording of any known format from in and writes its rows to out, and its metadata to out's Meta. The
// name of the input is for Meta and for errors, which name the line or byte. warn is called with one line for each kind
// of oddity that was corrected. The input is read once, from start to end, so that it may be a pipe, and a caller may
// count the bytes to show progress. Import does not close out, which is unusable after an error.
func Import(in io.Reader, name string, out *trace.Writer, warn func(string)) error {
	if err := read(in, name, out, warn); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func read(in io.Reader, name string, out *trace.Writer, warn func(string)) error {
	src := bufio.NewReaderSize(in, readBlock)
	head, err := peek(src)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		unpacked, err := gzip.NewReader(src)
		if err != nil {
			return fmt.Errorf("gunzip: %w", err)
		}
		ahead := newReadAhead(unpacked)
		defer ahead.stop()
		src = bufio.NewReaderSize(ahead, readBlock)
		if head, err = peek(src); err != nil {
			return fmt.Errorf("gunzip: %w", err)
		}
	}
	format := Detect(head)
	out.Meta().Source = format.String() + " " + filepath.Base(name)
	t := &text{lines: newLines(src), out: newRows(out, warn)}
	switch format {
	case Snapshot:
		if err := snapshot.Import(src, name, out, warn); err != nil {
			return err
		}
		return drain(src)
	case RMM:
		return t.run(t.rmm)
	case STAlloc:
		return t.run(t.stalloc)
	case MiniMalloc:
		return t.run(t.minimalloc)
	case Plain:
		return t.run(t.plain)
	case Parquet:
		return errors.New("already Parquet: a gm trace needs no import")
	}
	if len(head) == 0 {
		return errors.New("empty input")
	}
	return errors.New("unknown format: expected a PyTorch memory snapshot, an RMM log, an STAlloc trace, or a CSV with" +
		" the columns id, lower, upper and size or time_ns, op, id and size")
}

// drain reads the rest of the input after a snapshot, so that the checksum at the end of compressed data is verified.
func drain(src io.Reader) error {
	if _, err := io.Copy(io.Discard, src); err != nil {
		return fmt.Errorf("gunzip: %w", err)
	}
	return nil
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
