package column

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// columnReader holds one column's place in a file.
type columnReader struct {
	*Field
	chunk    int // index of the column among the chunks of a row group
	optional bool
	cursor   pageCursor
	table    []int64 // the dictionary of the row group: values, codes, or indexes of names (-1: unknown)
	unknown  string  // a string of the dictionary that is none of the names
	from, to int     // rows of the page not yet shown
}

// open goes to the start of the column's chunk in a row group.
func (c *columnReader) open(src io.ReaderAt, f *footer, g *group) error {
	chunk := &g.chunks[c.chunk]
	if err := f.checkChunk(g, chunk, c.physical()); err != nil {
		return err
	}
	start := chunk.start()
	c.cursor = pageCursor{src: src, offset: start, end: start + chunk.size, codec: chunk.codec, optional: c.optional}
	c.table = c.table[:0]
	c.unknown = ""
	c.from, c.to = 0, 0
	return nil
}

// load reads pages until there are rows to show.
func (c *columnReader) load(s *pageScratch, texts *Strings) error {
	for c.from == c.to {
		h, body, err := c.cursor.next(s)
		if err != nil {
			return err
		}
		switch h.kind {
		case format.DictionaryPage:
			err = c.decodeDictionary(&h, body, texts)
		case format.DataPage, format.DataPageV2:
			c.from, c.to = 0, int(h.values)
			err = c.decodeData(s, &h, body, texts)
		default:
			err = fmt.Errorf("page of unknown type %d", h.kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *columnReader) decodeDictionary(h *pageHeader, body []byte, texts *Strings) error {
	if h.encoding != format.Plain && h.encoding != format.PlainDictionary {
		return fmt.Errorf("dictionary encoded as %v", h.encoding)
	}
	var err error
	c.table, err = c.decodePlain(c.table[:0], body, h.values, texts)
	return err
}

func (c *columnReader) decodeData(s *pageScratch, h *pageHeader, body []byte, texts *Strings) error {
	var err error
	switch h.encoding {
	case format.Plain:
		if s.integers, err = c.decodePlain(s.integers[:0], body, h.values, texts); err == nil {
			c.rows.set(s.integers)
		}
	case format.RLEDictionary, format.PlainDictionary:
		err = c.decodeIndexes(s, body, int(h.values))
	case format.DeltaBinaryPacked:
		err = c.decodeDelta(s, body, h.values)
	default:
		err = fmt.Errorf("encoded as %v, which is not read", h.encoding)
	}
	return err
}

// decodePlain appends n values, which must be all there is.
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
		text := body[4 : 4+length]
		body = body[4+length:]
		if c.kind == kindEnum {
			dst = append(dst, c.decodeName(text))
			continue
		}
		code, err := texts.add(text)
		if err != nil {
			return dst, err
		}
		dst = append(dst, int64(code))
	}
	if len(body) > 0 {
		return dst, fmt.Errorf("%d bytes after the last string", len(body))
	}
	return dst, nil
}

func (c *columnReader) decodeName(text []byte) int64 {
	for i, name := range c.names {
		if string(text) == name {
			return int64(i)
		}
	}
	c.unknown = string(text)
	return -1
}

func (c *columnReader) decodeIndexes(s *pageScratch, body []byte, n int) error {
	if len(body) == 0 {
		return errRuns
	}
	if err := checkRuns(body[1:], int(body[0]), int64(n)); err != nil {
		return err
	}
	if body[0] == 0 { // one entry: the width leaves nothing to decode
		s.indexes = append(s.indexes[:0], make([]int32, n)...)
	} else {
		var err error
		var runs rle.DictionaryEncoding
		if cap(s.indexes) < n+7 {
			s.indexes = make([]int32, n+7)
		}
		if s.indexes, err = runs.DecodeInt32(s.indexes, body); err != nil {
			return err
		}
	}
	if len(s.indexes) < n || !c.rows.gather(c.table, s.indexes[:n]) {
		return fmt.Errorf("index outside of a dictionary of %d", len(c.table))
	}
	return nil
}

func (c *columnReader) decodeDelta(s *pageScratch, body []byte, n int64) error {
	if c.physical() != format.Int64 {
		return errDelta
	}
	if err := checkDelta(body, n); err != nil {
		return err
	}
	var deltas delta.BinaryPackedEncoding
	if int64(cap(s.integers)) < n {
		s.integers = make([]int64, n)
	}
	var err error
	if s.integers, err = deltas.DecodeInt64(s.integers, body); err != nil {
		return err
	}
	if int64(len(s.integers)) != n {
		return errDelta
	}
	c.rows.set(s.integers)
	return nil
}

// firstUnknown returns which of the first n rows not yet shown holds a string that is none of the names, or -1.
func (c *columnReader) firstUnknown(n int) int {
	if c.unknown == "" {
		return -1
	}
	if i := c.rows.find(-1, c.from, c.from+n); i >= 0 {
		return i - c.from
	}
	return -1
}
