// Package atomicfile writes files of which no reader ever sees half.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is a file that is being written. It is not found under its name before it is whole, unless that is the name of what is no regular
// file, such as /dev/null, which is written to as it is.
type File struct {
	*os.File
	path   string // where it is to be
	beside bool   // it is another file until then
}

// Create starts the file of a name, which Commit or Discard must end. Links are followed.
func Create(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, reason(err))
		}
		return &File{File: f, path: path}, nil
	}
	path = target(path)
	f, err := os.OpenFile(beside(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, reason(err)) // the name of the file beside says nothing
	}
	return &File{File: f, path: path, beside: true}, nil
}

// InPlace says that the file is written to as it is.
func (f *File) InPlace() bool { return !f.beside }

// Commit ends the file and gives it its name.
func (f *File) Commit() error {
	err := f.Close()
	if err == nil && f.beside {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		f.remove()
		return fmt.Errorf("write %s: %w", f.path, reason(err))
	}
	return nil
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

// target returns what a link leads to, or the path itself if it is none.
func target(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	target, err := os.Readlink(path) // to what is not there yet
	switch {
	case err != nil:
		return path
	case filepath.IsAbs(target):
		return target
	}
	return filepath.Join(filepath.Dir(path), target)
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

// beside returns the name of a new file in the folder of path.
func beside(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".gm-%d-%d", os.Getpid(), time.Now().UnixNano()))
}
