package column

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// headerOf encodes a page header and the page's body.
func headerOf(t *testing.T, h *format.PageHeader, body []byte) []byte {
	t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, body...)
}

func TestPageRefuses(t *testing.T) {
	page := func(size, compressed, values int32) format.PageHeader {
		return format.PageHeader{
			UncompressedPageSize: size, CompressedPageSize: compressed,
			DataPageHeader: thrift.New(format.DataPageHeader{NumValues: values}),
		}
	}
	second := func(h format.DataPageHeaderV2) format.PageHeader {
		return format.PageHeader{
			Type: format.DataPageV2, UncompressedPageSize: 8, CompressedPageSize: 8, DataPageHeaderV2: thrift.New(h),
		}
	}
	body := make([]byte, 8)
	for name, c := range map[string]struct {
		header format.PageHeader
		want   string
	}{
		"good":             {page(8, 8, 1), ""},
		"large":            {page(1<<30, 8, 1), "page of 1073741824 bytes, 8 compressed; at most 16777216 are read"},
		"large compressed": {page(8, 1<<30, 1), "page of 8 bytes, 1073741824 compressed; at most 16777216 are read"},
		"negative":         {page(-8, 8, 1), "page of -8 bytes, 8 compressed; at most 16777216 are read"},
		"beyond the chunk": {page(8, 9, 1), "page of 9 bytes, 8 are left"},
		"many rows":        {page(8, 8, 1<<30), "page of 1073741824 rows; at most 1048576 are read"},
		"negative rows":    {page(8, 8, -1), "page of -1 rows; at most 1048576 are read"},
		"other size":       {page(9, 8, 1), "page of 8 bytes, should be 9"},
		"nulls":            {second(format.DataPageHeaderV2{NumNulls: 1}), "has nulls"},
		"repetition":       {second(format.DataPageHeaderV2{RepetitionLevelsByteLength: 1}), "has repetition levels"},
		"levels beyond":    {second(format.DataPageHeaderV2{DefinitionLevelsByteLength: 9}), "9 bytes of levels in a page of 8"},
		"large dictionary": {format.PageHeader{
			Type: format.DictionaryPage, UncompressedPageSize: 8, CompressedPageSize: 8,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1 << 30}),
		}, "dictionary of 1073741824 values; at most 2097152 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			data := headerOf(t, &c.header, body)
			cursor := pageCursor{src: bytes.NewReader(data), end: int64(len(data))}
			if _, _, err := cursor.next(&pageScratch{}); message(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// Decompression of a page stops at the size in its header, even if there is far more.
func TestPageBomb(t *testing.T) {
	var small bytes.Buffer
	w, err := zstd.NewWriter(&small)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 512 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := format.PageHeader{
		UncompressedPageSize: 1000, CompressedPageSize: int32(small.Len()),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: 1}),
	}
	data := headerOf(t, &h, small.Bytes())
	scratch, err := newPageScratch()
	if err != nil {
		t.Fatal(err)
	}
	cursor := pageCursor{src: bytes.NewReader(data), end: int64(len(data)), codec: format.Zstd}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := cursor.next(scratch); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > MaxPage {
		t.Errorf("%d bytes allocated for a page of 1000", taken)
	}
}
