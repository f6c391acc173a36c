package column

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// writer is the part of a Writer that does not depend on the kind of file.
type writer struct {
	w        io.Writer
	schema   Schema
	columns  []*columnWriter
	encoder  *pageEncoder
	strings  *Strings
	offset   int64
	rows     int64 // of the whole file
	buffered int   // of the next page
	pending  int64 // of the next row group
	groups   []format.RowGroup
}

// newWriter starts a file; write takes its rows from the slices of the fields.
func newWriter(w io.Writer, schema Schema, fields []Field) (*writer, error) {
	out := &writer{w: w, schema: schema, strings: NewStrings()}
	for i := range fields {
		out.columns = append(out.columns, &columnWriter{Field: &fields[i]})
	}
	var err error
	out.encoder, err = newPageEncoder(out.strings)
	return out, err
}

// Strings returns the table from which columns of text take their codes.
func (w *writer) Strings() *Strings { return w.strings }

// Rows returns the number of rows written.
func (w *writer) Rows() int64 { return w.rows }

// even fails unless the slices of the fields have the same length.
func (w *writer) even() error {
	first := w.columns[0]
	for _, c := range w.columns {
		if c.rows.length() != first.rows.length() {
			return fmt.Errorf("BUG: %d rows of %s, %d of %s", c.rows.length(), c.name, first.rows.length(), first.name)
		}
	}
	return nil
}

// write adds the rows in the slices of the fields, which must have the same length.
func (w *writer) write() error {
	n := w.columns[0].rows.length()
	for from := 0; from < n; {
		taken, err := w.take(from, min(n, from+pageRows-w.buffered))
		if err != nil {
			return err
		}
		from += taken
		w.rows += int64(taken)
		w.pending += int64(taken)
		w.buffered += taken
		switch {
		case taken == 0 || w.pending == groupRows:
			err = w.flushGroup()
		case w.buffered == pageRows:
			err = w.flushPages()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take buffers rows of the batch, as many as fit into the dictionaries of strings.
func (w *writer) take(from, to int) (int, error) {
	for _, c := range w.columns {
		if !c.textual() {
			continue
		}
		c.buffer = c.rows.widen(c.buffer, from, to)
		n, err := w.encoder.room(c, c.buffer[w.buffered:])
		if err != nil {
			return 0, fmt.Errorf("row %d: %w", w.rows+int64(n), err)
		}
		to = from + n
	}
	for _, c := range w.columns {
		if c.textual() {
			c.buffer = c.buffer[:w.buffered+to-from]
		} else {
			c.buffer = c.rows.widen(c.buffer, from, to)
		}
	}
	return to - from, nil
}

// flushPages writes the buffered rows as one page of each column.
func (w *writer) flushPages() error {
	for _, c := range w.columns {
		if err := w.encoder.flush(c); err != nil {
			return err
		}
	}
	w.buffered = 0
	return nil
}

// flushGroup writes the pages as a row group.
func (w *writer) flushGroup() error {
	if err := w.flushPages(); err != nil {
		return err
	}
	if w.pending == 0 {
		return nil
	}
	g := format.RowGroup{NumRows: w.pending, Ordinal: int16(len(w.groups)), FileOffset: max(w.offset, int64(len(magic)))}
	for _, c := range w.columns {
		meta, err := w.writeChunk(c)
		if err != nil {
			return err
		}
		g.TotalByteSize += meta.TotalUncompressedSize
		g.TotalCompressedSize += meta.TotalCompressedSize
		g.Columns = append(g.Columns, format.ColumnChunk{MetaData: meta})
	}
	w.groups = append(w.groups, g)
	if len(w.groups)*len(w.columns) > MaxChunks || len(w.groups) > math.MaxInt16 {
		return fmt.Errorf("more than %d row groups", len(w.groups)-1)
	}
	w.pending = 0
	return nil
}

// writeChunk writes one column of a row group and resets it.
func (w *writer) writeChunk(c *columnWriter) (format.ColumnMetaData, error) {
	meta := format.ColumnMetaData{
		Type:         c.physical(),
		PathInSchema: []string{c.name},
		Codec:        format.Zstd,
		NumValues:    w.pending,
		Encoding:     []format.Encoding{format.RLEDictionary, format.Plain},
	}
	if c.kind == kindMonotone {
		meta.Encoding = []format.Encoding{format.DeltaBinaryPacked}
		// The range of the times lets readers skip row groups outside of the times that they want.
		meta.Statistics.MinValue = binary.LittleEndian.AppendUint64(nil, uint64(c.least))
		meta.Statistics.MaxValue = binary.LittleEndian.AppendUint64(nil, uint64(c.most))
	} else {
		page, size, err := w.encoder.dictionaryPage(c)
		if err != nil {
			return meta, fmt.Errorf("encode column %s: %w", c.name, err)
		}
		if meta.DictionaryPageOffset, err = w.emit(page); err != nil {
			return meta, err
		}
		meta.TotalUncompressedSize, meta.TotalCompressedSize = size, int64(len(page))
	}
	var err error
	meta.DataPageOffset, err = w.emit(c.pages)
	meta.TotalUncompressedSize += c.size
	meta.TotalCompressedSize += int64(len(c.pages))
	c.pages, c.size = c.pages[:0], 0
	c.dict.reset()
	return meta, err
}

// emit writes b, preceded by the magic if it is the first, and returns its offset.
func (w *writer) emit(b []byte) (offset int64, err error) {
	if w.offset == 0 {
		w.offset = int64(len(magic))
		if _, err := io.WriteString(w.w, magic); err != nil {
			return 0, err
		}
	}
	offset = w.offset
	n, err := w.w.Write(b)
	w.offset += int64(n)
	return offset, err
}

// finish writes the last rows and the footer.
func (w *writer) finish(metadata map[string]string) error {
	if err := w.flushGroup(); err != nil {
		return err
	}
	footer, err := w.footer(metadata)
	if err != nil {
		return err
	}
	if len(footer) > MaxFooter {
		return fmt.Errorf("footer of %d bytes, at most %d can be read", len(footer), MaxFooter)
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	_, err = w.emit(append(footer, magic...))
	return err
}

func (w *writer) footer(metadata map[string]string) ([]byte, error) {
	f := format.FileMetaData{
		Version:   2,
		NumRows:   w.rows,
		RowGroups: w.groups,
		CreatedBy: "gm",
		KeyValueMetadata: []format.KeyValue{
			{Key: keySchema, Value: w.schema.Name},
			{Key: keyVersion, Value: w.schema.Version()},
		},
	}
	f.Schema = append(f.Schema, format.SchemaElement{Name: w.schema.Name, NumChildren: thrift.New(int32(len(w.columns)))})
	for _, c := range w.columns {
		f.Schema = append(f.Schema, c.element())
		f.ColumnOrders = append(f.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		f.KeyValueMetadata = append(f.KeyValueMetadata, format.KeyValue{Key: key, Value: metadata[key]})
	}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &f)
	if err != nil {
		return nil, fmt.Errorf("encode footer: %w", err)
	}
	return b, nil
}
