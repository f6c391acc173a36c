package ranks_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/ranks"
)

// job describes the trace of one rank of a job.
type job struct {
	rank, world int64
	pid         int
	size        int64 // of the larger of two tensors
	command     string
	source      string
	start       int64
	stream      int64
	held, nccl  int64 // from the driver; 0 for no rows of the driver
	idle        bool  // it requests nothing
}

func (j job) name() string {
	return fmt.Sprintf("host=a/rank=%d/pid=%d/trace.parquet", j.rank, j.pid)
}

// write writes the trace below a folder.
func (j job) write(t *testing.T, folder string) string {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Rank: j.rank, WorldSize: j.world, Command: j.command, Source: j.source, Devices: []string{"H200"}})
	b := &trace.Batch{}
	id, now := int64(0), j.start
	if j.held > 0 {
		for by, bytes := range map[string]int64{"pytorch": j.held, "nccl": j.nccl} {
			id++
			tag := w.Strings().Code(trace.DriverTag(trace.KindMemory, by))
			b.Append(trace.Event{TimeNS: now, Op: trace.OpAlloc, ID: id, Size: bytes, Level: trace.LevelDriver, Tag: tag})
		}
	}
	for range 3 {
		for _, size := range []int64{100, j.size} {
			id++
			now += 10
			b.Append(trace.Event{TimeNS: now, Op: trace.OpAlloc, ID: id, Size: size, Stream: j.stream})
		}
		b.Append(trace.Event{TimeNS: now, Op: trace.OpFree, ID: id})
		b.Append(trace.Event{TimeNS: now, Op: trace.OpFree, ID: id - 1})
		if j.idle {
			b = &trace.Batch{}
		}
		b.Append(trace.Event{TimeNS: now, Op: trace.OpMark, Tag: w.Strings().Code("step")})
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, j.name())
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// four writes the traces of four ranks that are alike.
func four(t *testing.T, folder string) (files []string) {
	for rank := range int64(4) {
		files = append(files, job{rank: rank, world: 4, pid: 7, size: 1000, stream: 100 * rank}.write(t, folder))
	}
	return files
}

func read(t *testing.T, folder string) (*ranks.Job, *ranks.Table) {
	t.Helper()
	j, err := ranks.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	table, err := j.Read(context.Background(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	return j, table
}

func TestWhole(t *testing.T) {
	folder := t.TempDir()
	four(t, folder)
	j, table := read(t, folder)
	if err := j.Incomplete(); err != nil {
		t.Error(err)
	}
	if len(table.Ranks) != 4 || table.Alike != 1 || len(table.Outliers) != 0 || table.Spread != (ranks.Spread{Least: 1100, Median: 1100, Most: 1100}) {
		t.Errorf("%+v", table)
	}
	for i, r := range table.Ranks {
		if r.Rank != int64(i) || r.Peak != 1100 || r.Iterations != 3 || r.IterationNS != 20 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

func TestBadFolders(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, folder string, files []string)
		want   []string // what the problems and then the error hold
	}{
		"missing": {func(t *testing.T, _ string, files []string) { remove(t, files[1]) },
			[]string{"no trace of rank 1, of 4 ranks", "1 of 4 ranks missing"}},
		"truncated": {func(t *testing.T, _ string, files []string) { truncate(t, files[2], 50) },
			[]string{"no trace of rank 2", "host=a/rank=2/pid=7/trace.parquet is left out: corrupt: truncated", "1 of 4 ranks missing, 1 of 4 files left out"}},
		"damaged in the middle": {func(t *testing.T, _ string, files []string) { damage(t, files[2]) },
			[]string{"no trace of rank 2", "rank=2/pid=7/trace.parquet is left out: corrupt", "1 of 4 ranks missing, 1 of 4 files left out"}},
		"another job": {func(t *testing.T, folder string, _ []string) {
			job{rank: 0, world: 2, pid: 9, size: 5, command: "x"}.write(t, folder)
		},
			[]string{"pid=9/trace.parquet is left out: of another job: of 2 ranks, x", "1 of 5 files left out"}},
		"a rank twice": {func(t *testing.T, folder string, _ []string) {
			job{rank: 3, world: 4, pid: 9, size: 5}.write(t, folder)
		},
			[]string{"rank 3 is there twice", "1 of 5 files left out"}},
		"another clock": {func(t *testing.T, folder string, _ []string) {
			job{rank: 2, world: 4, pid: 7, size: 1000, start: 1e15}.write(t, folder)
		},
			[]string{"other clocks on rank 2: ", "other clocks on 1 rank"}},
		"no trace": {func(t *testing.T, folder string, _ []string) {
			if err := os.WriteFile(filepath.Join(folder, "x.parquet"), []byte("text"), 0o666); err != nil {
				t.Fatal(err)
			}
		}, []string{"x.parquet is left out: ", "1 of 5 files left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			c.change(t, folder, four(t, folder))
			j, table := read(t, folder)
			err := j.Incomplete()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Join(append(j.Problems(), err.Error()), "\n")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\nlacks %q", got, want)
				}
			}
			for _, r := range table.Ranks {
				if r.Peak != 1100 {
					t.Errorf("rank %d: peak %d", r.Rank, r.Peak)
				}
			}
			if len(table.Ranks)+len(j.Missing) != 4 {
				t.Errorf("%d ranks, %d missing", len(table.Ranks), len(j.Missing))
			}
		})
	}
}

func TestNothing(t *testing.T) {
	folder := t.TempDir()
	if _, err := ranks.Open(folder); err == nil || !strings.Contains(err.Error(), "holds no trace that can be read, no file that ends in .parquet") {
		t.Error(err)
	}
	snapshot := filepath.Join(folder, "a.pickle.gz")
	if err := os.WriteFile(snapshot, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ranks.Open(folder); err == nil || !strings.Contains(err.Error(), "holds snapshots and no traces: `gmtrace import "+snapshot) {
		t.Error(err)
	}
	if _, err := ranks.Open(filepath.Join(folder, "absent")); err == nil {
		t.Error("a folder that is not there was opened")
	}
	for _, file := range four(t, folder) {
		damage(t, file)
	}
	j, err := ranks.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Read(context.Background(), func() {}); err == nil || !strings.Contains(err.Error(), "no trace could be read: host=a/rank=0") {
		t.Error(err)
	}
}

// TestIdle has ranks that request nothing: they are left out, and where all are there is no table.
func TestIdle(t *testing.T) {
	folder := t.TempDir()
	job{world: 2, pid: 7, idle: true}.write(t, folder)
	j, err := ranks.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Read(context.Background(), func() {}); err == nil || !strings.Contains(err.Error(), "trace.parquet: holds no request for memory") {
		t.Error(err)
	}
	launcher := t.TempDir()
	job{pid: 7, idle: true}.write(t, launcher)
	if err := os.Rename(filepath.Join(launcher, "host=a/rank=0"), filepath.Join(launcher, "host=a/launcher")); err != nil {
		t.Fatal(err)
	}
	if j, err = ranks.Open(launcher); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Read(context.Background(), func() {}); err == nil || !strings.HasSuffix(err.Error(), ": no trace holds a request for memory") {
		t.Error(err)
	}
	job{rank: 1, world: 2, pid: 7, size: 1000}.write(t, folder)
	j, table := read(t, folder)
	if len(table.Ranks) != 1 || len(j.Left) != 1 || !slices.Equal(j.Missing, []int64{0}) {
		t.Errorf("%+v, left out: %v, missing: %v", table, j.Left, j.Missing)
	}
}

// TestPairsWithoutRanks pairs traces that have no rank by the names of their files.
func TestPairsWithoutRanks(t *testing.T) {
	folders := [2]string{t.TempDir(), t.TempDir()}
	for i, folder := range folders {
		for rank := range int64(2) {
			file := job{rank: rank, pid: 7, size: 1000 * (rank + 1)}.write(t, folder)
			if err := os.Rename(file, filepath.Join(folder, fmt.Sprintf("%d.parquet", rank))); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 {
			job{pid: 7, size: 1000}.write(t, folder) // of rank 0
		}
	}
	_, a := read(t, folders[0])
	_, b := read(t, folders[1])
	both, alone := ranks.Pairs(a, b)
	if len(both) != 2 || !slices.Equal(alone, []int64{0}) {
		t.Fatalf("%d pairs, alone: %v", len(both), alone)
	}
	for _, p := range both {
		if p.A.Peak != p.B.Peak {
			t.Errorf("%s is paired with %s", p.A.File, p.B.File)
		}
	}
}

func TestCancelled(t *testing.T) {
	folder := t.TempDir()
	four(t, folder)
	j, err := ranks.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := j.Read(ctx, func() {}); err != context.Canceled {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

func TestOutliers(t *testing.T) {
	folder := t.TempDir()
	four(t, folder)
	job{rank: 1, world: 4, pid: 7, size: 2000, held: 5000, nccl: 300}.write(t, folder)
	job{rank: 2, world: 4, pid: 7, size: 1000, start: 1e15}.write(t, folder)
	j, table := read(t, folder)
	want := []string{
		"rank 1: peak of 2.05 KiB, the median is 1.07 KiB", "rank 1: NCCL of 300 B, the median is 0 B",
	}
	if !slices.Equal(table.Outliers, want) {
		t.Errorf("%q, want %q", table.Outliers, want)
	}
	if curves := table.Curves(); len(curves) != 3 || !slices.Equal(j.Clocks, []int64{2}) {
		t.Errorf("%d curves, clocks of %d", len(curves), j.Clocks)
	}
	if table.First != 1 || table.Alike != 2 || table.Ranks[1].Held != 5300 || table.Ranks[1].Need() != 5300 {
		t.Errorf("%+v, rank 1: %+v", table, table.Ranks[1])
	}
}

func TestNumbers(t *testing.T) {
	for want, of := range map[string][]int64{"": nil, "3": {3}, "0-2, 7": {0, 1, 2, 7}, "0, 2, 4": {0, 2, 4}} {
		if got := ranks.Numbers(of); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}

func remove(t *testing.T, file string) {
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, file string, size int64) {
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

// damage overwrites the first pages of a file, and leaves its footer.
func damage(t *testing.T, file string) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 200), 4); err != nil {
		t.Fatal(err)
	}
}

// TestClocks shifts the clock of one rank. The traces last from 10 to 60 ns after their start.
func TestClocks(t *testing.T) {
	const start = 1000
	for _, c := range []struct {
		shift   int64
		differs bool
	}{{0, false}, {5, false}, {-5, false}, {49, false}, {-49, false}, {51, true}, {-51, true}, {900, true}} {
		folder := t.TempDir()
		for rank := range int64(4) {
			of := job{rank: rank, world: 4, pid: 7, size: 1000, start: start}
			if rank == 2 {
				of.start += c.shift
			}
			of.write(t, folder)
		}
		opened, err := ranks.Open(folder)
		if err != nil || slices.Equal(opened.Clocks, []int64{2}) != c.differs {
			t.Errorf("shifted by %d ns, by the footers alone: clocks of %d differ, %v", c.shift, opened.Clocks, err)
		}
		j, table := read(t, folder)
		if got := slices.Equal(j.Clocks, []int64{2}); got != c.differs || !got && len(j.Clocks) > 0 || (j.Incomplete() != nil) != c.differs {
			t.Errorf("shifted by %d ns: clocks of %d differ: %v", c.shift, j.Clocks, j.Incomplete())
		}
		if r := table.Ranks[2]; r.Peak != 1100 || r.IterationNS != 20 || table.Alike != 1 || len(table.Outliers) != 0 {
			t.Errorf("shifted by %d ns: %+v, outliers %q", c.shift, r, table.Outliers)
		}
	}
}
