package instance

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open reads the named file, or standard input for "-" or "".
func Open(name string, o Options) (*Instance, error) {
	if name == "" || name == "-" {
		return named("standard input", os.Stdin, o)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", name, reason(err))
	}
	defer f.Close()
	return named(name, f, o)
}

func named(name string, r io.Reader, o Options) (*Instance, error) {
	in, err := Read(r, o)
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", name, reason(err))
	}
	return in, nil
}

// reason returns the system's error about a file, without the name.
func reason(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// Read reads an instance, which may be gzipped, of up to 50 million buffers and 2 GiB of text. A buffer takes its line and some 100 bytes
// in memory. Errors name the line.
func Read(r io.Reader, o Options) (*Instance, error) {
	text, err := readText(r)
	if err != nil {
		return nil, err
	}
	l := lines{rest: text}
	header, ok := l.next()
	if !ok {
		return nil, errors.New("empty input")
	}
	columns, err := newColumns(header)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	}
	b := newBuilder(&Instance{text: text, columns: columns}, o)
	for line, ok := l.next(); ok; line, ok = l.next() {
		if err := b.add(line, l.number); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.number, err)
		}
	}
	return b.finish()
}
