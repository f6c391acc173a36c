// Package gunzip decompresses as the program of this name does: members in sequence, and zeros after the last one are padding.
package gunzip

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Reader decompresses gzip.
type Reader struct {
	src    *bufio.Reader
	member *gzip.Reader
}

// NewReader returns a reader of what is compressed in src.
func NewReader(src *bufio.Reader) (*Reader, error) {
	member, err := gzip.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("gunzip: %w", err)
	}
	member.Multistream(false)
	return &Reader{src, member}, nil
}

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	for {
		n, err := r.member.Read(b)
		switch {
		case err == nil || n > 0 && err == io.EOF:
			return n, nil
		case err != io.EOF:
			return n, fmt.Errorf("gunzip: %w", err)
		}
		if err := r.next(); err == io.EOF {
			return 0, io.EOF
		} else if err != nil {
			return 0, fmt.Errorf("gunzip: %w", err)
		}
	}
}

// next goes on to the next member. It returns io.EOF after the last one.
func (r *Reader) next() error {
	for {
		switch b, err := r.src.ReadByte(); {
		case err != nil:
			return err
		case b != 0:
			if err := r.src.UnreadByte(); err != nil {
				return err
			}
			if err := r.member.Reset(r.src); err != nil {
				return err
			}
			r.member.Multistream(false)
			return nil
		}
	}
}
