// Package columntest damages files for the tests of their readers.
package columntest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// Plain returns the file with its pages neither compressed nor protected by checksums, so that changes in them reach
// the decoders.
func Plain(file []byte) ([]byte, error) {
	footer, err := Footer(file)
	if err != nil {
		return nil, err
	}
	out := []byte(magic)
	for i := range footer.RowGroups {
		for j := range footer.RowGroups[i].Columns {
			meta := &footer.RowGroups[i].Columns[j].MetaData
			if out, err = plainChunk(out, file, meta); err != nil {
				return nil, fmt.Errorf("row group %d, column %d: %w", i, j, err)
			}
		}
	}
	return WithFooter(out, footer)
}

// plainChunk appends a chunk of file to out.
func plainChunk(out, file []byte, meta *format.ColumnMetaData) ([]byte, error) {
	start := meta.DataPageOffset
	if meta.DictionaryPageOffset > 0 {
		start = meta.DictionaryPageOffset
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	in := bytes.NewReader(file[start : start+meta.TotalCompressedSize])
	meta.TotalCompressedSize, meta.DataPageOffset = 0, 0
	for in.Len() > 0 {
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&h); err != nil {
			return nil, err
		}
		body := make([]byte, h.CompressedPageSize)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, err
		}
		if body, err = decoder.DecodeAll(body, nil); err != nil {
			return nil, err
		}
		h.CompressedPageSize, h.CRC = int32(len(body)), 0
		head, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
		if err != nil {
			return nil, err
		}
		if h.Type == format.DictionaryPage {
			meta.DictionaryPageOffset = int64(len(out))
		} else if meta.DataPageOffset == 0 {
			meta.DataPageOffset = int64(len(out))
		}
		out = append(append(out, head...), body...)
		meta.TotalCompressedSize += int64(len(head) + len(body))
	}
	meta.Codec = format.Uncompressed
	return out, nil
}

// Footer returns the footer of a file.
func Footer(file []byte) (*format.FileMetaData, error) {
	_, b := Split(file)
	f := &format.FileMetaData{}
	return f, thrift.Unmarshal(new(thrift.CompactProtocol), b, f)
}

// WithFooter makes a file of data and a footer.
func WithFooter(data []byte, footer *format.FileMetaData) ([]byte, error) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), footer)
	if err != nil {
		return nil, err
	}
	return Join(data, b), nil
}

// Split splits a file into its data and its encoded footer.
func Split(file []byte) (data, footer []byte) {
	start := footerStart(file)
	return file[:start], file[start : len(file)-len(magic)-4]
}

// Join makes a file of data and an encoded footer.
func Join(data, footer []byte) []byte {
	file := append(append([]byte(nil), data...), footer...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
	return append(file, magic...)
}
