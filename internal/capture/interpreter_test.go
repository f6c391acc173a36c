package capture

import (
	"strconv"
	"strings"
	"testing"

	"gm/formats/trace"
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

// TestMostLive leaves out what comes when too much lives, and takes what goes.
func TestMostLive(t *testing.T) {
	out := newRows()
	in := newInterpreter(&out, nil)
	in.inContexts = maxLive - 1
	for _, r := range []ring.Record{
		{Kind: ring.Alloc, A: 1, B: 1}, {Kind: ring.Alloc, A: 2, B: 1}, {Kind: ring.HostAlloc, A: 3, B: 1}, {Kind: ring.Free, A: 1}, {Kind: ring.Alloc, A: 4, B: 1},
	} {
		in.take(&r)
	}
	if got, want := described(&out.batch), "alloc 1@1, free 1@1, alloc 1@4"; got != want || in.left != 2 {
		t.Errorf("%s, %d left out", got, in.left)
	}
}

// TestUnknown keeps the names of so many functions, and so much of each.
func TestUnknown(t *testing.T) {
	in := newInterpreter(newLiveRows(), nil)
	long := strings.Repeat("x", maxName)
	for _, name := range []string{long + "y", long + "z"} {
		in.take(&ring.Record{Kind: ring.Unknown, Extra: []byte(name)})
	}
	if in.unknown[long] != 2 {
		t.Errorf("%v", in.unknown)
	}
	for i := range maxUnknown {
		in.take(&ring.Record{Kind: ring.Unknown, Extra: []byte(strconv.Itoa(i))})
	}
	if len(in.unknown) != maxUnknown {
		t.Errorf("%d names", len(in.unknown))
	}
}

// TestRemember forgets the calls of all threads when there are too many.
func TestRemember(t *testing.T) {
	last := map[int32]int{}
	for i := range int32(maxThreads) {
		remember(last, i, 1)
	}
	if len(last) != maxThreads {
		t.Errorf("%d threads", len(last))
	}
	if remember(last, maxThreads, 2); len(last) != 1 || last[maxThreads] != 2 {
		t.Errorf("%d threads", len(last))
	}
}

// TestClamped forces numbers of a record into what a trace may hold.
func TestClamped(t *testing.T) {
	for _, c := range []struct {
		n            uint64
		size, device int64
	}{{0, 0, 0}, {5, 5, 5}, {trace.MaxSize, trace.MaxSize, trace.MaxSize}, {trace.MaxSize + 1, trace.MaxSize, 0}, {1 << 63, trace.MaxSize, 0}} {
		if size, device := clampSize(c.n), known(c.n); size != c.size || device != c.device {
			t.Errorf("%d: %d, of a device %d", c.n, size, device)
		}
	}
	in := newInterpreter(newLiveRows(), nil)
	for given, want := range map[int32]int32{-5: -1, -1: -1, 0: 0, trace.MaxDevice: trace.MaxDevice, trace.MaxDevice + 1: trace.MaxDevice} {
		r := ring.Record{Kind: ring.Device, Device: given, Thread: given}
		if in.take(&r); r.Device != want || r.Thread != max(given, 0) {
			t.Errorf("%d: device %d, thread %d", given, r.Device, r.Thread)
		}
	}
}

// oneSize is NVML that reports a context's size.
type oneSize int64

func (s oneSize) contextSize([16]byte, uint64, int64, int64) int64 { return int64(s) }

// TestAskedSize puts a size that only NVML knows into the record.
func TestAskedSize(t *testing.T) {
	for _, c := range []struct {
		in, want ring.Record
		rows     string
	}{
		{ring.Record{B: 100, D: 9}, ring.Record{B: 7, D: settled}, "alloc 7"},
		{ring.Record{B: 100, C: 60, D: 9}, ring.Record{B: 100, C: 60, D: 9}, "alloc 40"},
		{ring.Record{B: 60, C: 100, D: 9}, ring.Record{B: 60, C: 100, D: 9}, ""},
		{ring.Record{D: 9}, ring.Record{D: 9}, ""},
		{ring.Record{B: 5, D: settled}, ring.Record{B: 5, D: settled}, "alloc 5"},
	} {
		out := newRows()
		r := c.in
		r.Kind, r.A = ring.Context, 1
		newInterpreter(&out, oneSize(7)).take(&r)
		if got := described(&out.batch); r.B != c.want.B || r.C != c.want.C || r.D != c.want.D || got != c.rows {
			t.Errorf("%+v: %+v, %s", c.in, r, got)
		}
	}
}

// TestSampleKinds tells what a process uses from what all use.
func TestSampleKinds(t *testing.T) {
	out := newRows()
	in := newInterpreter(&out, nil)
	for whose, want := range map[uint64]trace.Kind{sampleCard: trace.KindCard, sampleProcess: trace.KindProcess} {
		in.take(&ring.Record{Kind: kindSample, A: whose})
		if got := out.texts.strings.Text(out.batch.Tag[out.batch.Len()-1]); got != string(want) {
			t.Errorf("%d: %s, want %s", whose, got, want)
		}
	}
}
