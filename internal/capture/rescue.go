package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// rescue is the writer of a trace. When the output fails, as on a full disk, rescue copies what was written to a file in a folder of the
// session and goes on there. A trace cannot be produced twice: merging uses up the framework's history.
type rescue struct {
	to      io.Writer
	folders []string
	name    string
	written int64
	file    *os.File // in a folder; nil while the output works
	cause   error    // of the output's failure
}

// Write implements io.Writer.
func (r *rescue) Write(b []byte) (int, error) {
	if r.file != nil {
		return r.file.Write(b)
	}
	n, err := r.to.Write(b)
	r.written += int64(n)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	r.cause = err
	for _, folder := range r.folders {
		if f, failed := r.move(folder, b[n:]); failed == nil {
			r.file = f
			return len(b), nil
		}
	}
	return n, err
}

// move creates the file in a folder and writes to it what was written so far, then more.
func (r *rescue) move(folder string, more []byte) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, r.name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if r.written > 0 {
		from, ok := r.to.(io.ReaderAt)
		if !ok {
			err = errors.ErrUnsupported
		} else if n, failed := io.Copy(f, io.NewSectionReader(from, 0, r.written)); failed != nil || n < r.written {
			err = errors.Join(io.ErrShortWrite, failed)
		}
	}
	if err == nil {
		_, err = f.Write(more)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// end closes the file and returns the final error. For a rescued trace that is an error that names the file.
func (r *rescue) end(err error) error {
	if r.file == nil {
		return err
	}
	if err := errors.Join(err, r.file.Close()); err != nil {
		return errors.Join(r.cause, err, os.Remove(r.file.Name()))
	}
	return fmt.Errorf("write trace: %w; the trace is in %s", r.cause, r.file.Name())
}
