// Package columntest damages files for the tests of their readers.
package columntest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// Plain returns the file with its pages neither compressed nor protected by checksums, so that what is changed in
// them reaches the decoders.
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
		meta.DictionaryPageOffset = int64(len(out))
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	in := bytes.NewReader(file[start : start+meta.TotalCompressedSize])
	meta.TotalCompressedSize = 0
	for in.Len() > 0 {
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&h); err != nil {
			return nil, err
		}
		body := make([]byte, h.CompressedPageSize)
		if _, err := in.Read(body); err != nil {
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
		if h.Type != format.DictionaryPage && meta.TotalCompressedSize <= meta.DataPageOffset-start {
			meta.DataPageOffset = int64(len(out))
			start = meta.DataPageOffset
		}
		out = append(append(out, head...), body...)
		meta.TotalCompressedSize += int64(len(head) + len(body))
	}
	meta.Codec = format.Uncompressed
	return out, nil
}

// Footer returns the footer of a whole file.
func Footer(file []byte) (*format.FileMetaData, error) {
	end := len(file) - len(magic) - 4
	length := int(binary.LittleEndian.Uint32(file[end:]))
	f := &format.FileMetaData{}
	return f, thrift.Unmarshal(new(thrift.CompactProtocol), file[end-length:end], f)
}

// WithFooter appends a footer to the data of a file.
func WithFooter(data []byte, footer *format.FileMetaData) ([]byte, error) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), footer)
	if err != nil {
		return nil, err
	}
	data = append(data, b...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(b)))
	return append(data, magic...), nil
}
