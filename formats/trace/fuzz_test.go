package trace_test

import (
	"bytes"
	"testing"

	"gm/formats/column/columntest"
	"gm/formats/trace"
)

// FuzzTraceReader takes data and footer separately, so that changes of length keep both intact.
func FuzzTraceReader(f *testing.F) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Devices: []string{"H200"}, PID: 7})
	if err := w.Write(good(w)); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	add := func(data, footer []byte) { f.Add(data, footer) }
	add(columntest.Split(out.Bytes()))
	add(columntest.Split(plain(f, out.Bytes())))
	f.Fuzz(func(_ *testing.T, data, footer []byte) {
		file := columntest.Join(data, footer)
		r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
		for err == nil {
			_, err = r.Next()
		}
	})
}
