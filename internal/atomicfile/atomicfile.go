// Package atomicfile writes files that readers see whole or not at all.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// File is a file being written. It appears under its name only when it is complete. Exceptions, which are written directly, are names of
// what is not a regular file, such as /dev/null or a FIFO, and of descriptors of this process, such as /dev/stdout.
type File struct {
	*os.File
	path   string // its final path
	beside bool   // it is written to a temporary file beside path
}

// Create starts a file, which the caller must end with Commit or Discard. It follows links and keeps them. A file that is replaced must be
// writable; the new one gets its mode, and its owner as far as that is allowed.
func Create(path string) (*File, error) {
	f, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, reason(err)) // without the temporary file's name, which means nothing to the user
	}
	return f, nil
}

func create(path string) (*File, error) {
	p, err := find(path)
	if err != nil {
		return nil, err
	}
	if p.inPlace {
		f, err := p.open()
		if err != nil {
			return nil, err
		}
		return &File{File: f, path: path}, nil
	}
	f, err := p.makeBeside()
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: p.path, beside: true}, nil
}

// InPlace reports whether the file is written directly, without a temporary file.
func (f *File) InPlace() bool { return !f.beside }

// Commit ends the file: it syncs the contents to the disk, since they may have taken long to compute, then renames the file to its path.
func (f *File) Commit() error {
	var err error
	if f.beside {
		err = f.sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && f.beside {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		f.remove()
		return fmt.Errorf("write %s: %w", f.path, reason(err))
	}
	return nil
}

// sync writes the contents to the disk, if the file system supports that.
func (f *File) sync() error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Discard ends the file and removes what was written.
func (f *File) Discard() {
	f.Close()
	f.remove()
}

func (f *File) remove() {
	if f.beside {
		os.Remove(f.Name())
	}
}

// Write creates the file at path, calls write for its contents, and commits it; after an error of write it discards the file.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Discard()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

// Check returns an error if a file could not be written, without touching it.
func Check(path string) error {
	p, err := find(path)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err))
	}
	return nil
}

// reason returns the system's error about a file, without the file's name.
func reason(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	if inner := (*os.LinkError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}
