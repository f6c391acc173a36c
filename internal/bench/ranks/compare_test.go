package ranks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"gm/formats/trace"
	"gm/internal/bench"
	results "gm/internal/bench/ranks"
	"gm/internal/bench/replay"
	"gm/internal/cuda/sim"
	"gm/internal/trace/ranks"
)

// writeRank writes the trace of a rank that allocates bytes twice, the second time after so many nanoseconds.
func writeRank(t *testing.T, folder string, rank, world, bytes, afterNS int64) {
	t.Helper()
	name := filepath.Join(folder, fmt.Sprintf("rank=%d", rank), "trace.parquet")
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := trace.NewWriter(f, trace.Meta{Rank: rank, WorldSize: world})
	b := &trace.Batch{}
	b.Append(trace.Event{TimeNS: 1000, Op: trace.OpAlloc, ID: 1, Size: bytes, Stream: rank})
	b.Append(trace.Event{TimeNS: 1000 + afterNS, Op: trace.OpAlloc, ID: 2, Size: bytes, Stream: rank})
	b.Append(trace.Event{TimeNS: 2000 + afterNS, Op: trace.OpFree, ID: 1})
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompare holds the results of all ranks against those of each rank alone, and the rank that runs out first against the times.
func TestCompare(t *testing.T) {
	const mib = 1 << 20
	folder := t.TempDir()
	writeRank(t, folder, 0, 4, 100*mib, 50)
	writeRank(t, folder, 1, 4, 300*mib, 90)
	writeRank(t, folder, 2, 4, 300*mib, 70)
	writeRank(t, folder, 3, 4, 100*mib, 10)
	specs, err := bench.ParseSpecs("torch,expandable")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		capacity  int64
		rank      int64
		failed    int
		afterNS   int64
		different int
	}{
		{0, 1, 0, 0, 2},          // rank 1 is the first of those that reserve most
		{500 * mib, 2, 2, 70, 2}, // of ranks 1 and 2, rank 2 asks earlier
		{150 * mib, 1, 4, 0, 2},  // ranks 1 and 2 fail at once
	} {
		j, err := ranks.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		gpu := bench.GPU{Capacity: c.capacity, Costs: sim.H200()}
		table, err := results.Compare(context.Background(), j, specs, gpu, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if first := table.First[0]; first.Rank != c.rank || first.Failed != c.failed || first.AfterNS != c.afterNS || table.Different != c.different {
			t.Errorf("capacity %d: %+v of %d sequences, want %+v", c.capacity, first, table.Different, c)
		}
		for i, r := range table.Ranks {
			programs, err := replay.Open(filepath.Join(folder, fmt.Sprintf("rank=%d", r.Rank), "trace.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := bench.CompareOn(context.Background(), programs, specs, gpu, func() {})
			if err != nil {
				t.Fatal(err)
			}
			for k, result := range r.Results {
				if result.Reserved != want[k].PeakReserved || !reflect.DeepEqual(result.OOM, want[k].OOM) {
					t.Errorf("capacity %d, row %d: %+v, alone %+v", c.capacity, i, result, want[k])
				}
			}
		}
	}
}
