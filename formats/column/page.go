package column

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// pageHeader is the part of a PageHeader of parquet.thrift that readers use.
type pageHeader struct {
	kind             format.PageType
	size, compressed int64 // bytes of the body, decompressed and as stored
	crc              uint32
	checked          bool // crc is present
	values           int64
	encoding         format.Encoding
	nulls            int64
	repLevels        int64 // bytes of levels, which a page of version 2 stores uncompressed in front
	defLevels        int64
	plain            bool // a page of version 2 that is not compressed
}

// parsePageHeader decodes the header at the start of data and returns its length.
func parsePageHeader(data []byte) (h pageHeader, length int, err error) {
	r := &thriftReader{data: data}
	h.kind = -1
	r.structure(thriftStruct, func(id int16, typ byte) {
		switch id {
		case 1:
			h.kind = format.PageType(r.integer(typ))
		case 2:
			h.size = r.integer(typ)
		case 3:
			h.compressed = r.integer(typ)
		case 4:
			h.crc, h.checked = uint32(r.integer(typ)), true
		case 5, 7:
			h.parseVersion1(r, typ)
		case 8:
			h.parseVersion2(r, typ)
		default:
			r.skip(typ)
		}
	})
	return h, r.pos, r.err
}

// parseVersion1 decodes a DataPageHeader, or a DictionaryPageHeader, which begins with the same fields.
func (h *pageHeader) parseVersion1(r *thriftReader, typ byte) {
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			h.values = r.integer(typ)
		case 2:
			h.encoding = format.Encoding(r.integer(typ))
		default:
			r.skip(typ)
		}
	})
}

func (h *pageHeader) parseVersion2(r *thriftReader, typ byte) {
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			h.values = r.integer(typ)
		case 2:
			h.nulls = r.integer(typ)
		case 4:
			h.encoding = format.Encoding(r.integer(typ))
		case 5:
			h.defLevels = r.integer(typ)
		case 6:
			h.repLevels = r.integer(typ)
		case 7:
			h.plain = typ == thriftFalse
		default:
			r.skip(typ)
		}
	})
}

func (h *pageHeader) check(left int64) error {
	switch {
	case h.size < 0 || h.size > MaxPage || h.compressed < 0 || h.compressed > MaxPage:
		return refuse("page of %d bytes, %d compressed; at most %d are read", h.size, h.compressed, MaxPage)
	case h.compressed > left:
		return fmt.Errorf("page of %d bytes, %d are left", h.compressed, left)
	case h.kind != format.DictionaryPage && (h.values < 0 || h.values > MaxValues):
		return refuse("page of %d rows; at most %d are read", h.values, MaxValues)
	case h.kind == format.DictionaryPage && (h.values < 0 || h.values > MaxEntries):
		return refuse("dictionary of %d values; at most %d are read", h.values, MaxEntries)
	case h.nulls != 0:
		return errNull
	case h.repLevels != 0:
		return errors.New("has repetition levels")
	case h.defLevels < 0 || h.defLevels > h.compressed || h.defLevels > h.size:
		return fmt.Errorf("%d bytes of levels in a page of %d", h.defLevels, h.size)
	}
	return nil
}

// pageScratch is memory for decoding a page. The columns share it.
type pageScratch struct {
	stored   []byte
	plain    []byte
	integers []int64
	indexes  []int32
	zstd     *zstd.Decoder
}

func newPageScratch() (*pageScratch, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(MaxPage), zstd.WithDecoderMaxWindow(MaxPage))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return &pageScratch{zstd: decoder}, nil
}

// pageCursor walks over the pages of one chunk.
type pageCursor struct {
	src      io.ReaderAt
	offset   int64
	end      int64
	codec    format.CompressionCodec
	optional bool
}

// next reads the page at the cursor. The body holds only the values, has padding behind it for decoders that read
// ahead, and is valid until the scratch is used again.
func (c *pageCursor) next(s *pageScratch) (h pageHeader, body []byte, err error) {
	left := c.end - c.offset
	if left <= 0 {
		return h, nil, errors.New("too few rows")
	}
	s.stored = grow(s.stored, int(min(left, headerWindow)))
	if err := readAt(c.src, s.stored, c.offset); err != nil {
		return h, nil, err
	}
	h, length, err := parsePageHeader(s.stored)
	if err != nil {
		return h, nil, fmt.Errorf("page header: %w", err)
	}
	if err := h.check(left - int64(length)); err != nil {
		return h, nil, err
	}
	stored := s.stored[length:]
	if int64(len(stored)) >= h.compressed {
		stored = stored[:h.compressed]
	} else {
		s.stored = grow(s.stored, int(h.compressed))
		stored = s.stored
		if err := readAt(c.src, stored, c.offset+int64(length)); err != nil {
			return h, nil, err
		}
	}
	c.offset += int64(length) + h.compressed
	if h.checked && crc32.ChecksumIEEE(stored) != h.crc {
		return h, nil, errors.New("page checksum is wrong")
	}
	body, err = c.open(s, &h, stored)
	return h, body, err
}

// open decompresses a page and removes the levels.
func (c *pageCursor) open(s *pageScratch, h *pageHeader, stored []byte) ([]byte, error) {
	levels := stored[:h.defLevels]
	stored = stored[h.defLevels:]
	size := int(h.size - h.defLevels)
	s.plain = grow(s.plain, size)
	if c.codec == format.Zstd && !(h.kind == format.DataPageV2 && h.plain) {
		out, err := s.zstd.DecodeAll(stored, s.plain[:0:size])
		if err != nil {
			return nil, fmt.Errorf("decompress page: %w", err)
		}
		s.plain = s.plain[:copy(s.plain[:size], out)]
	} else {
		s.plain = s.plain[:copy(s.plain, stored)]
	}
	if len(s.plain) != size {
		return nil, fmt.Errorf("page of %d bytes, should be %d", len(s.plain), size)
	}
	if !c.optional || h.kind == format.DictionaryPage {
		return s.plain, nil
	}
	if h.kind == format.DataPageV2 {
		return s.plain, checkPresent(levels, h.values)
	}
	return cutLevels(s.plain, h.values)
}

// padding is how far the unpacking of bits may read beyond its input.
const padding = 32

// grow returns a slice of length n with room for the padding, in the memory of b if that suffices.
func grow(b []byte, n int) []byte {
	if cap(b) < n+padding {
		return make([]byte, n, n+n/4+padding)
	}
	return b[:n]
}
