package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/term"
)

// outputs is the unfinished files of a run.
type outputs struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (o *outputs) add(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.paths == nil {
		o.paths = map[string]bool{}
	}
	o.paths[path] = true
}

func (o *outputs) forget(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.paths, path)
}

func (o *outputs) removeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for path := range o.paths {
		os.Remove(path)
	}
	o.paths = nil
}

// Binary calls write with where the binary output of a command goes: path, or standard output for "" and "-", which must not
// be a terminal.
func (c *Context) Binary(path string, write func(io.Writer) error) error {
	if path != "" && path != "-" {
		return c.File(path, write)
	}
	if err := c.CheckBinary(); err != nil {
		return err
	}
	return write(c.Out)
}

// CheckBinary fails when standard output is a terminal, to which Binary would not write.
func (c *Context) CheckBinary() error {
	if f, ok := c.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return errTerminal
	}
	return nil
}

var errTerminal = Usage("will not write binary data to a terminal: name a file, or use a pipe")

// Distinct refuses an output that is the input, of which nothing would be left.
func Distinct(in, out string) error {
	a, err := os.Stat(in)
	if err != nil {
		return nil // standard input, or what reading it will say
	}
	if b, err := os.Stat(out); err == nil && a.Mode().IsRegular() && os.SameFile(a, b) {
		return Usage("%s is both input and output", in)
	}
	return nil
}

// File writes a file beside path and renames it to path once it is whole, so that no reader ever sees half of it.
// What is there and no regular file, such as /dev/null, is written to as it is.
func (c *Context) File(path string, write func(io.Writer) error) (err error) {
	if path == "-" {
		return Usage("standard output is taken: name a file")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeInPlace(path, write)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if target, err := os.Readlink(path); err == nil { // to what is not there yet
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	f, err := os.OpenFile(beside(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err)) // the name of the file beside says nothing
	}
	c.outputs.add(f.Name())
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
		c.outputs.forget(f.Name())
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// reason returns what the system says of a file, without the name.
func reason(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// beside returns the name of a new file in the folder of path.
func beside(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".gm-%d-%d", os.Getpid(), time.Now().UnixNano()))
}

func writeInPlace(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if term.IsTerminal(int(f.Fd())) {
		return errors.Join(errTerminal, f.Close())
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
