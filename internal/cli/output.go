package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/term"

	"gm/internal/atomicfile"
	"gm/internal/units"
)

// outputs holds the unfinished files of a run.
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

// Binary calls write with a command's binary output: the file path, or standard output for "" and "-". Standard output must not be a
// terminal.
func (c *Context) Binary(path string, write func(io.Writer) error) error {
	if path != "" && path != "-" {
		return c.File(path, write)
	}
	if err := c.CheckBinary(); err != nil {
		return err
	}
	return write(c.Out)
}

// Page is Binary for a page that is opened in a browser: it says what it wrote, and how large that is.
func (c *Context) Page(path string, write func(io.Writer) error) error {
	var written units.Bytes
	err := c.Binary(path, func(w io.Writer) error { return write(counter{w, &written}) })
	if err == nil && path != "" && path != "-" {
		c.Note("%s: %s", path, written)
	}
	return err
}

// counter counts the bytes that it passes on.
type counter struct {
	io.Writer
	bytes *units.Bytes
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	*c.bytes += units.Bytes(n)
	return n, err
}

// CheckBinary returns an error if standard output is a terminal, to which Binary would not write.
func (c *Context) CheckBinary() error {
	if f, ok := c.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return errTerminal
	}
	return nil
}

var errTerminal = Usage("will not write binary data to a terminal: name a file, or use a pipe")

// CheckFiles checks the files of a command before its work begins. No FIFO may be two inputs, since the second open would block; no
// output may be an input, which it would overwrite, or another output; and each output must be writable. "" and "-" stand for no file.
func CheckFiles(in, out []string) error {
	for i, path := range in {
		for _, other := range in[:i] {
			if isPipe(path) && sameFile(other, path) {
				return Usage("%s is two inputs, and a pipe, which is read once", path)
			}
		}
	}
	for i, path := range out {
		if path == "" || path == "-" {
			continue
		}
		for _, other := range in {
			if same(other, path) {
				return Usage("%s is both input and output", other)
			}
		}
		for _, other := range out[:i] {
			if same(other, path) {
				return Usage("%s is two outputs", path)
			}
		}
		if err := atomicfile.Check(path); err != nil {
			return err
		}
	}
	return nil
}

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && path != "-" && info.Mode().Type() == os.ModeNamedPipe
}

func sameFile(a, b string) bool {
	of, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(of, other)
}

// ForPrograms returns an error unless a file, which each process of a program is to open by its name, is a regular file: a FIFO would block
// them. "" stands for no file.
func ForPrograms(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %s is no regular file: each process of the program opens it", flag, path)
	}
	return nil
}

// same reports whether two names refer to one regular file, or would if it existed.
func same(a, b string) bool {
	if a == "" || a == "-" {
		return false
	}
	of, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	switch {
	case err == nil && otherErr == nil:
		return of.Mode().IsRegular() && os.SameFile(of, other)
	case err != nil && otherErr != nil:
		wholeA, err := filepath.Abs(a)
		wholeB, otherErr := filepath.Abs(b)
		return err == nil && otherErr == nil && wholeA == wholeB
	}
	return false
}

// File writes a file beside path and renames it to path once it is complete, so that no reader ever sees a part of it.
// What exists and is not a regular file, such as /dev/null, is written directly; a terminal is refused.
func (c *Context) File(path string, write func(io.Writer) error) error {
	if path == "-" {
		return Usage("standard output is taken: name a file")
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	if !f.InPlace() {
		c.outputs.add(f.Name())
		defer c.outputs.forget(f.Name())
	} else if term.IsTerminal(int(f.Fd())) {
		f.Discard()
		return errTerminal
	}
	if err := write(f); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
