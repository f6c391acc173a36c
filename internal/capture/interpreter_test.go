package capture

import (
	"testing"

	"gm/internal/capture/ring"
)

// noCards is a machine without NVML.
type noCards struct{}

func (noCards) contextSize([16]byte, uint64, int64, int64) int64 { return 0 }

// BenchmarkInterpreter interprets the records of a program that allocates and frees in a pool: 100 blocks live.
func BenchmarkInterpreter(b *testing.B) {
	out := newRows()
	in := newInterpreter(&out, noCards{})
	in.libraries.add(library{from: 0x1000, to: 0x2000, path: "/usr/lib/libc10_cuda.so"})
	b.ReportAllocs()
	for i := range b.N {
		address := uint64(i/2%100+1) << 12
		r := ring.Record{Kind: ring.PoolAlloc, TimeNS: int64(i), A: address, B: 4096, D: 7, Caller: 0x1234, Thread: 9}
		if i%2 == 1 {
			r.Kind = ring.Free
		}
		if in.take(&r); out.batch.Len() >= batchRows {
			out.batch.Reset()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}
