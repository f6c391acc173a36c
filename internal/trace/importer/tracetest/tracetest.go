// Package tracetest opens recordings in tests.
package tracetest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer"
)

// Read returns a recording as a trace: a Parquet file unchanged, a file of another format imported.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".parquet") {
		return file
	}
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := importer.Import(bytes.NewReader(file), path, w, func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Open returns a reader of a trace in memory, which is closed when the test ends. The name is for errors.
func Open(t testing.TB, file []byte, name string) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
