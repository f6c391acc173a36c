package failure_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gm/formats/trace"
	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/failure"
	"gm/internal/trace/failure/failuretest"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// read returns the failures of a trace.
func read(t *testing.T, file []byte) []*failure.Failure {
	t.Helper()
	open := func() *trace.Reader { return tracetest.Open(t, bytes.Clone(file), "x") }
	o, err := overview.Read(open())
	if err != nil {
		t.Fatal(err)
	}
	all, err := failure.Read(open(), o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCauses runs programs out of memory in ways whose cause is known, with both of PyTorch's allocators.
func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		capacity int64
		fraction float64
		run      func(m *failuretest.Machine)
		cause    failure.Cause
		expanded failure.Cause // with expandable segments; "" if nothing fails
		limit    failure.Limit
	}{
		"live tensors alone": {gib, 1, func(m *failuretest.Machine) {
			for m.Alloc(100*mib, 0) {
			}
		}, failure.Full, failure.Full, failure.NoLimit},
		"every other tensor freed": {gib, 1, func(m *failuretest.Machine) {
			for range 200 {
				m.Alloc(5*mib, 0)
			}
			for i := range 100 {
				m.Free(i)
			}
			m.Alloc(200*mib, 0)
		}, failure.Fragmented, failure.Fragmented, failure.NoLimit},
		"free memory of another stream": {gib, 1, func(m *failuretest.Machine) {
			for range 100 {
				m.Alloc(5*mib, 7)
			}
			for i := range 25 {
				for range 3 {
					m.Free(i)
				}
			}
			m.Alloc(500*mib, 0)
			m.Alloc(100*mib, 0)
		}, failure.Fragmented, failure.Fragmented, failure.NoLimit},
		"a fraction, with tensors alone": {2 * gib, 0.5, func(m *failuretest.Machine) {
			for m.Alloc(100*mib, 0) {
			}
		}, failure.Limited, failure.Limited, failure.Fraction},
	} {
		for _, expandable := range []bool{false, true} {
			conf := allocconf.Default()
			conf.MemoryFraction, conf.Expandable = c.fraction, expandable
			m := failuretest.New(t, c.capacity, conf)
			c.run(m)
			want := c.cause
			if expandable {
				want = c.expanded
			}
			all := read(t, m.Trace(0))
			if len(all) != 1 || all[0].Cause != want || all[0].Limit != c.limit {
				t.Errorf("%s, expandable %t: %+v, want %s %s", name, expandable, all, want, c.limit)
			}
		}
	}
}

// TestRandom lets random programs run out of memory, and compares each failure with the allocator's own account and the program's. A trace
// that begins midway says the same.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	causes := map[failure.Cause]int{}
	for run := range 300 {
		conf := allocconf.Default()
		conf.Expandable = run%3 == 0
		capacity := int64(1 * gib)
		limit := capacity
		if run%5 == 0 {
			conf.MemoryFraction = 0.5
			limit = capacity / 2
		}
		m := failuretest.New(t, capacity, conf)
		m.Meta.AllocConf = "" // a limit is set by a call, which no trace has
		if conf.Expandable {
			m.Meta.AllocConf = "expandable_segments:True"
		}
		size := runOut(rng, m)
		failed := len(m.Rows) - 1
		stats := m.Torch.Stats()
		want := failure.Fragmented
		need := (size + 511) / 512 * 512
		for _, tensor := range m.Live() {
			need += (tensor.Size + 511) / 512 * 512
		}
		switch {
		case conf.MemoryFraction < 1:
			want = failure.Limited
		case need > capacity:
			want = failure.Full
		}
		for _, first := range []int{0, failed / 3, failed} {
			f := read(t, m.Trace(first))[0]
			mem := &f.Memory
			lost := stats.Allocated - mem.Live - mem.Rounding - mem.Tails // tails before a free block, which no row tells apart from it
			if f.Cause != want || f.Size != size || mem.Reserved != stats.Reserved || f.Need != need ||
				mem.Live+mem.Rounding+mem.Tails+mem.Idle.All() != stats.Reserved || mem.Largest > mem.Idle.Pieces ||
				lost < 0 || lost > int64(len(m.Live()))*mib {
				t.Fatalf("run %d from row %d: %+v, want %s of %d, allocator %+v", run, first, f, want, size, stats)
			}
			if first == 0 && want == failure.Limited && (f.Room > limit || f.Most < limit) {
				t.Errorf("run %d: the limit is %d, found from %d to %d", run, limit, f.Room, f.Most)
			}
		}
		causes[want]++
	}
	if causes[failure.Full] < 10 || causes[failure.Fragmented] < 10 || causes[failure.Limited] < 10 {
		t.Errorf("causes: %v", causes)
	}
}

// runOut makes random requests until one fails, and returns its size.
func runOut(rng *rand.Rand, m *failuretest.Machine) int64 {
	keep := 2 + rng.IntN(8) // the fewer, the more memory is freed
	for {
		size := 1 + rng.Int64N(60*mib)
		switch rng.IntN(6) {
		case 0:
			size = 1 + rng.Int64N(mib)
		case 1:
			size = 1 + rng.Int64N(200*mib)
		}
		if !m.Alloc(size, cuda.Stream(rng.IntN(2))) {
			return size
		}
		if n := len(m.Live()); n > 0 && rng.IntN(keep) == 0 {
			m.Free(rng.IntN(n))
		}
	}
}
