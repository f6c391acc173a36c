package trace_test

import (
	"bytes"
	"io"
	"testing"

	"gm/formats/trace"
)

const benchRows = 5_000_000

// BenchmarkWriteTrace writes 5 M events. The time to generate them, a batch ahead, is not included.
func BenchmarkWriteTrace(b *testing.B) {
	for _, stacks := range []bool{false, true} {
		b.Run(map[bool]string{false: "stacks=no", true: "stacks=yes"}[stacks], func(b *testing.B) {
			var size countingWriter
			rows := 0
			for b.Loop() {
				b.StopTimer()
				size, rows = 0, 0
				w := trace.NewWriter(&size, trace.Meta{})
				s := newSynth(20_000, w)
				if !stacks {
					clear(s.stacks)
				}
				batch := &trace.Batch{}
				for rows < benchRows {
					batch.Reset()
					s.next(batch)
					b.StartTimer()
					if err := w.Write(batch); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					rows += batch.Len()
				}
				b.StartTimer()
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			report(b, rows, int(size))
		})
	}
}

// BenchmarkReadTrace reads and validates the same 5 M events, from memory.
func BenchmarkReadTrace(b *testing.B) {
	for _, stacks := range []bool{false, true} {
		b.Run(map[bool]string{false: "stacks=no", true: "stacks=yes"}[stacks], func(b *testing.B) {
			var out bytes.Buffer
			w := trace.NewWriter(&out, trace.Meta{})
			s := newSynth(20_000, w)
			if !stacks {
				clear(s.stacks)
			}
			rows, err := s.write(w, benchRows)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if got := readAll(b, out.Bytes()); got != rows {
					b.Fatalf("%d rows, want %d", got, rows)
				}
			}
			report(b, rows, out.Len())
		})
	}
}

func readAll(tb testing.TB, file []byte) int {
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		tb.Fatal(err)
	}
	rows := 0
	for {
		batch, err := r.Next()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			tb.Fatal(err)
		}
		rows += batch.Len()
	}
}

func report(b *testing.B, rows, bytes int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(bytes)/float64(rows), "bytes/event")
}
