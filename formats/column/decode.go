package column

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// legacyDictionary is the encoding that some writers still state both for a dictionary, which is PLAIN, and for the
// indexes into it, which are RLE_DICTIONARY.
const legacyDictionary format.Encoding = 2

// columnReader reads one column of a file.
type columnReader struct {
	*Field
	chunk    int // index of the column among the chunks of a row group
	optional bool
	cursor   pageCursor
	table    []int64 // the dictionary of the row group: values, codes, or indexes of names (-1: unknown)
	unknown  string  // a string of the dictionary that is not one of the names
	from, to int     // rows of the page that no batch has shown yet
}

// open moves to the start of the column's chunk in a row group.
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
	if h.encoding != format.Plain && h.encoding != legacyDictionary {
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
	case format.RLEDictionary, legacyDictionary:
		err = c.decodeIndexes(s, body, int(h.values))
	case format.DeltaBinaryPacked:
		err = c.decodeDelta(s, body, h.values)
	case format.DeltaLengthByteArray:
		err = c.decodeLengths(s, body, h.values, texts)
	default:
		err = refuse("encoded as %v, which is not read", h.encoding)
	}
	return err
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
		if cap(s.indexes) < n+maxFill {
			s.indexes = make([]int32, n+maxFill)
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

// firstUnknown returns the index, among the next n rows, of the first that holds a string that is not one of the names, or -1.
func (c *columnReader) firstUnknown(n int) int {
	if c.unknown == "" {
		return -1
	}
	if i := c.rows.find(-1, c.from, c.from+n); i >= 0 {
		return i - c.from
	}
	return -1
}
