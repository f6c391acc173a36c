package trace_test

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"

	"gm/formats/trace"
)

// row is a row of a trace as another writer or reader of Parquet sees it.
type row struct {
	TimeNS int64  `parquet:"time_ns,delta"`
	Op     string `parquet:"op,dict"`
	ID     int64  `parquet:"id"`
	Size   int64  `parquet:"size"`
	Addr   uint64 `parquet:"addr,dict"`
	Device int32  `parquet:"device,dict"`
	Stream int64  `parquet:"stream,dict"`
	Pool   string `parquet:"pool"`
	Thread int32  `parquet:"thread,delta"`
	Level  string `parquet:"level,dict"`
	Stack  string `parquet:"stack,dict"`
	Tag    string `parquet:"tag,dict"`
}

// rowsOf returns the rows of b as row values.
func rowsOf(w *trace.Writer, b *trace.Batch) []row {
	var rows []row
	text := w.Strings().Text
	for i := range b.Len() {
		e := b.Row(i)
		rows = append(rows, row{
			e.TimeNS, e.Op.String(), e.ID, e.Size, e.Addr, e.Device, e.Stream, text(e.Pool), e.Thread, e.Level.String(),
			text(e.Stack), text(e.Tag),
		})
	}
	return rows
}

// TestOtherReader reads files of this package with the reader of parquet-go.
func TestOtherReader(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Host: "gpu1"})
	b := good(w)
	s := newSynth(5000, w)
	s.id = 5
	rows := b.Len()
	for rows < 300_000 {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		s.next(b)
		rows += b.Len()
	}
	want := rowsOf(w, b)
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := f.Lookup("gm.host"); v != "gpu1" || f.NumRows() != int64(rows) {
		t.Errorf("host %q, %d rows, want %d", v, f.NumRows(), rows)
	}
	r := parquet.NewGenericReader[row](f)
	if err := r.SeekToRow(int64(rows - len(want))); err != nil {
		t.Fatal(err)
	}
	got := make([]row, len(want))
	if n, err := r.Read(got); n != len(want) {
		t.Fatalf("%d rows: %v", n, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("row %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// optionalRow has optional columns, as DuckDB and pandas write them, and columns that traces do not have.
type optionalRow struct {
	Extra  []struct{ A, B int64 } `parquet:"extra"`
	Op     *string                `parquet:"op,optional,dict"`
	Tag    *string                `parquet:"tag,optional"`
	TimeNS *int64                 `parquet:"time_ns,optional"`
	ID     *int64                 `parquet:"id,optional"`
	Size   *int64                 `parquet:"size,optional"`
	Addr   *uint64                `parquet:"addr,optional"`
	Nested struct{ Pool string }  `parquet:"nested"`
	Device *int32                 `parquet:"device,optional"`
	Stream *int64                 `parquet:"stream,optional"`
	Pool   *string                `parquet:"pool,optional"`
	Thread *int32                 `parquet:"thread,optional"`
	Level  *string                `parquet:"level,optional"`
	Stack  *string                `parquet:"stack,optional"`
	Weight float64                `parquet:"weight"`
}

// TestOtherWriter reads files of parquet-go's writer: other encodings, pages and columns.
func TestOtherWriter(t *testing.T) {
	w := trace.NewWriter(&bytes.Buffer{}, trace.Meta{})
	s := newSynth(3000, w)
	b := &trace.Batch{}
	for b.Len() < 100_000 {
		s.next(b)
	}
	rows := rowsOf(w, b)
	optional := make([]optionalRow, len(rows))
	for i := range rows {
		r := &rows[i]
		optional[i] = optionalRow{
			Op: &r.Op, Tag: &r.Tag, TimeNS: &r.TimeNS, ID: &r.ID, Size: &r.Size, Addr: &r.Addr, Device: &r.Device,
			Stream: &r.Stream, Pool: &r.Pool, Thread: &r.Thread, Level: &r.Level, Stack: &r.Stack, Weight: 1,
			Extra: make([]struct{ A, B int64 }, i%3),
		}
	}
	metadata := []parquet.WriterOption{
		parquet.KeyValueMetadata("gm.schema", "trace"), parquet.KeyValueMetadata("gm.version", "1.7"),
		parquet.PageBufferSize(20_000), parquet.MaxRowsPerRowGroup(30_000),
	}
	for name, options := range map[string][]parquet.WriterOption{
		"zstd, v2":         {parquet.Compression(&parquet.Zstd)},
		"zstd, v1":         {parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1)},
		"uncompressed, v2": nil,
		"uncompressed, v1": {parquet.DataPageVersion(1)},
	} {
		t.Run(name, func(t *testing.T) {
			compareRead(t, write(t, rows, append(options, metadata...)), rows)
		})
		t.Run("optional, "+name, func(t *testing.T) {
			compareRead(t, write(t, optional, append(options, metadata...)), rows)
		})
	}
	optional[77_777].Size = nil
	err := readErr(write(t, optional, append(metadata, parquet.Compression(&parquet.Zstd))))
	if want := "trace x.parquet: column size: has nulls"; message(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	err = readErr(write(t, rows, append(metadata, parquet.Compression(&parquet.Snappy))))
	if want := "trace x.parquet: column time_ns: compressed by SNAPPY, only ZSTD and UNCOMPRESSED are read"; message(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func write[R any](t *testing.T, rows []R, options []parquet.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[R](&out, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func compareRead(t *testing.T, file []byte, want []row) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	text := r.Strings().Text
	n := 0
	for {
		b, err := r.Next()
		if err != nil {
			if n == len(want) {
				return
			}
			t.Fatal(err)
		}
		for i := range b.Len() {
			e := b.Row(i)
			got := row{
				e.TimeNS, e.Op.String(), e.ID, e.Size, e.Addr, e.Device, e.Stream, text(e.Pool), e.Thread,
				e.Level.String(), text(e.Stack), text(e.Tag),
			}
			if got != want[n] {
				t.Fatalf("row %d: %+v, want %+v", n, got, want[n])
			}
			n++
		}
	}
}
