package column

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/parquet-go/parquet-go/hashprobe"
)

// columnWriter collects one column's part of a row group.
type columnWriter struct {
	*Field
	buffer []int64 // rows of the next page
	dict   dictionary
	pages  []byte // the encoded pages
	size   int64  // bytes of the pages before compression
	least  int64  // of a monotone column
	most   int64
}

// pageEncoder encodes pages. The columns share its memory.
type pageEncoder struct {
	indexes []int32
	body    []byte
	stored  []byte
	zstd    *zstd.Encoder
	texts   *Strings
}

func newPageEncoder(texts *Strings) (*pageEncoder, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return &pageEncoder{zstd: encoder, texts: texts}, nil
}

// text returns the string that a value of a textual column stands for; ok is false if there is none.
func (e *pageEncoder) text(c *columnWriter, value int64) (text string, ok bool) {
	switch {
	case c.kind == kindEnum && uint64(value) < uint64(len(c.names)):
		return c.names[value], true
	case c.kind == kindText && uint64(value) < uint64(e.texts.Len()):
		return e.texts.Text(int32(value)), true
	}
	return "", false
}

// room adds values of a textual column to the dictionary and returns how many of them fit.
func (e *pageEncoder) room(c *columnWriter, values []int64) (int, error) {
	for i, v := range values {
		if c.dict.has(v) {
			continue
		}
		if c.dict.bytes > dictTexts {
			return i, nil
		}
		text, ok := e.text(c, v)
		switch {
		case !ok:
			return i, fmt.Errorf("%s %d stands for no string", c.name, v)
		case len(text) > MaxText:
			return i, fmt.Errorf("%s of %d bytes, more than %d", c.name, len(text), MaxText)
		}
		if err := e.texts.check(); err != nil {
			return i, err
		}
		c.dict.add(v, text)
	}
	return len(values), nil
}

// flush encodes the rows in the column's buffer as a page.
func (e *pageEncoder) flush(c *columnWriter) error {
	if len(c.buffer) == 0 {
		return nil
	}
	encoding, err := e.encode(c)
	if err != nil {
		return fmt.Errorf("encode column %s: %w", c.name, err)
	}
	header := format.PageHeader{
		Type: format.DataPageV2,
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues:    int32(len(c.buffer)),
			NumRows:      int32(len(c.buffer)),
			Encoding:     encoding,
			IsCompressed: thrift.New(true),
		}),
	}
	c.buffer = c.buffer[:0]
	c.pages, err = e.page(c.pages, &header, &c.size)
	return err
}

// encode encodes the body of a page and returns its encoding.
func (e *pageEncoder) encode(c *columnWriter) (format.Encoding, error) {
	var err error
	switch {
	case c.kind == kindMonotone:
		c.spread()
		var deltas delta.BinaryPackedEncoding
		e.body, err = deltas.EncodeInt64(e.body, c.buffer)
		return format.DeltaBinaryPacked, err
	case !c.textual() && len(c.dict.values) > dictEntries:
		e.body = appendIntegers(e.body[:0], c.buffer, c.rows.width())
		return format.Plain, nil
	}
	e.index(c)
	var runs rle.DictionaryEncoding
	e.body, err = runs.EncodeInt32(e.body, e.indexes)
	return format.RLEDictionary, err
}

// spread extends the range of the row group to include the buffer's values.
func (c *columnWriter) spread() {
	if len(c.pages) == 0 {
		c.least, c.most = c.buffer[0], c.buffer[0]
	}
	for _, v := range c.buffer {
		c.least, c.most = min(c.least, v), max(c.most, v)
	}
}

// index looks up the buffer's values in the dictionary and adds new integers to it.
func (e *pageEncoder) index(c *columnWriter) {
	n := len(c.buffer)
	if cap(e.indexes) < n {
		e.indexes = make([]int32, n)
	}
	e.indexes = e.indexes[:n]
	d := &c.dict
	if c.textual() {
		for i, v := range c.buffer {
			e.indexes[i] = d.local[v] - 1
		}
		return
	}
	if d.probe == nil {
		d.probe = hashprobe.NewInt64Table(1024, 0.85)
	}
	const step = 2048 // blocks without a new value are skipped
	for i := 0; i < n; i += step {
		j := min(i+step, n)
		if d.probe.Probe(c.buffer[i:j], e.indexes[i:j]) == 0 {
			continue
		}
		for k, index := range e.indexes[i:j] {
			if int(index) == len(d.values) {
				d.values = append(d.values, c.buffer[i+k])
			}
		}
	}
}

// dictionaryPage returns the page that holds the column's dictionary, and its size before compression.
func (e *pageEncoder) dictionaryPage(c *columnWriter) (page []byte, size int64, err error) {
	if c.textual() {
		e.body = e.body[:0]
		for _, v := range c.dict.values {
			// Other readers refuse a file with a string that is not UTF-8.
			text, _ := e.text(c, v)
			if !utf8.ValidString(text) {
				text = strings.ToValidUTF8(text, "\uFFFD")
			}
			e.body = binary.LittleEndian.AppendUint32(e.body, uint32(len(text)))
			e.body = append(e.body, text...)
		}
	} else {
		e.body = appendIntegers(e.body[:0], c.dict.values, c.rows.width())
	}
	header := format.PageHeader{
		Type: format.DictionaryPage,
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
			NumValues: int32(len(c.dict.values)),
			Encoding:  format.Plain,
		}),
	}
	page, err = e.page(nil, &header, &size)
	return page, size, err
}

// page compresses the body and appends the header and the body to dst. It adds their uncompressed size to size.
func (e *pageEncoder) page(dst []byte, header *format.PageHeader, size *int64) ([]byte, error) {
	if len(e.body) > MaxPage {
		return dst, fmt.Errorf("page of %d bytes, at most %d can be read", len(e.body), MaxPage)
	}
	e.stored = e.zstd.EncodeAll(e.body, e.stored[:0])
	header.UncompressedPageSize = int32(len(e.body))
	header.CompressedPageSize = int32(len(e.stored))
	header.CRC = int32(crc32.ChecksumIEEE(e.stored))
	head, err := thrift.Marshal(new(thrift.CompactProtocol), header)
	if err != nil {
		return dst, fmt.Errorf("encode page header: %w", err)
	}
	*size += int64(len(head) + len(e.body))
	return append(append(dst, head...), e.stored...), nil
}

func appendIntegers(dst []byte, values []int64, width int) []byte {
	if width == 4 {
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
		return dst
	}
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}
