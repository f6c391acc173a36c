// Package atomicfile writes files of which no reader ever sees half.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// File is a file that is being written. It is not found under its name before it is whole, unless that is the name of what is no regular
// file, such as /dev/null or a FIFO, or of a descriptor of this process, such as /dev/stdout: those are written to as they are.
type File struct {
	*os.File
	path   string // where it is to be
	beside bool   // it is another file until then
}

// Create starts the file of a name, which Commit or Discard must end. Links are followed and stay. What the file replaces passes on its
// mode, and its owner as far as that is allowed; it must be one that may be written to.
func Create(path string) (*File, error) {
	f, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, reason(err)) // the name of the file beside says nothing
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

// InPlace says that the file is written to as it is.
func (f *File) InPlace() bool { return !f.beside }

// Commit ends the file and gives it its name, once its contents are on the disk: they may have taken long to make.
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

// sync writes the contents to the disk, where the file system knows how to.
func (f *File) sync() error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Discard ends the file and leaves nothing of it.
func (f *File) Discard() {
	f.Close()
	f.remove()
}

func (f *File) remove() {
	if f.beside {
		os.Remove(f.Name())
	}
}

// Write writes the file of a name by calling write.
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

// Check says why a file could not be written, without touching it.
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

// reason returns what the system says of a file, without the name.
func reason(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	if inner := (*os.LinkError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}
