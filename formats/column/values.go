package column

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

// decodePlain appends the n values of body, which must hold nothing else.
func (c *columnReader) decodePlain(dst []int64, body []byte, n int64, texts *Strings) ([]int64, error) {
	if c.textual() {
		return c.decodeTexts(dst, body, n, texts)
	}
	width := int64(c.rows.width())
	if int64(len(body)) != n*width {
		return dst, fmt.Errorf("%d values of %d bytes in %d bytes", n, width, len(body))
	}
	dst = slices.Grow(dst, int(n))
	for ; len(body) >= 8 && width == 8; body = body[8:] {
		dst = append(dst, int64(binary.LittleEndian.Uint64(body)))
	}
	for ; len(body) >= 4; body = body[4:] {
		dst = append(dst, int64(int32(binary.LittleEndian.Uint32(body))))
	}
	return dst, nil
}

func (c *columnReader) decodeTexts(dst []int64, body []byte, n int64, texts *Strings) ([]int64, error) {
	if n > int64(len(body)/4) {
		return dst, fmt.Errorf("%d strings in %d bytes", n, len(body))
	}
	dst = slices.Grow(dst, int(n))
	for ; n > 0; n-- {
		if len(body) < 4 {
			return dst, errors.New("strings end early")
		}
		length := binary.LittleEndian.Uint32(body)
		if length > MaxText || int(length) > len(body)-4 {
			return dst, fmt.Errorf("string of %d bytes", length)
		}
		code, err := c.code(body[4:4+length], texts)
		if err != nil {
			return dst, err
		}
		dst = append(dst, code)
		body = body[4+length:]
	}
	if len(body) > 0 {
		return dst, fmt.Errorf("%d bytes after the last string", len(body))
	}
	return dst, nil
}

// code returns the value that stands for a string of the file in the batch; -1 if it is not one of an enumeration's names.
func (c *columnReader) code(text []byte, texts *Strings) (int64, error) {
	if c.kind == kindText {
		code, err := texts.add(text)
		return int64(code), err
	}
	for i, name := range c.names {
		if string(text) == name {
			return int64(i), nil
		}
	}
	c.unknown = string(text)
	return -1, nil
}

// decodeDelta decodes n integers, encoded as differences, into the rows of the page.
func (c *columnReader) decodeDelta(s *pageScratch, body []byte, n int64) (err error) {
	if c.textual() {
		return errDelta
	}
	if c.rows.width() == 4 {
		if _, err := s.decodeDelta32(body, n); err != nil {
			return err
		}
	} else if err := s.decodeDelta64(body, n); err != nil {
		return err
	}
	c.rows.set(s.integers)
	return nil
}

func (s *pageScratch) decodeDelta64(body []byte, n int64) (err error) {
	if _, err := checkDelta(body, n, 64); err != nil {
		return err
	}
	if int64(cap(s.integers)) < n {
		s.integers = make([]int64, n)
	}
	var deltas delta.BinaryPackedEncoding
	if s.integers, err = deltas.DecodeInt64(s.integers, body); err == nil && int64(len(s.integers)) != n {
		err = errDelta
	}
	return err
}

// decodeDelta32 decodes n integers of 32 bits and returns the data that follows.
func (s *pageScratch) decodeDelta32(body []byte, n int64) (rest []byte, err error) {
	if rest, err = checkDelta(body, n, 32); err != nil {
		return nil, err
	}
	if int64(cap(s.indexes)) < n {
		s.indexes = make([]int32, n)
	}
	var deltas delta.BinaryPackedEncoding
	if s.indexes, err = deltas.DecodeInt32(s.indexes, body[:len(body)-len(rest)]); err != nil {
		return nil, err
	}
	s.integers = s.integers[:0]
	for _, v := range s.indexes {
		s.integers = append(s.integers, int64(v))
	}
	if int64(len(s.integers)) != n {
		return nil, errDelta
	}
	return rest, nil
}

// decodeLengths decodes n strings, whose lengths all come first, into the rows of the page.
func (c *columnReader) decodeLengths(s *pageScratch, body []byte, n int64, texts *Strings) error {
	if !c.textual() {
		return errDelta
	}
	body, err := s.decodeDelta32(body, n)
	if err != nil {
		return err
	}
	for i, length := range s.integers {
		if length < 0 || length > MaxText || length > int64(len(body)) {
			return fmt.Errorf("string of %d bytes", length)
		}
		if s.integers[i], err = c.code(body[:length], texts); err != nil {
			return err
		}
		body = body[length:]
	}
	c.rows.set(s.integers)
	return nil
}
