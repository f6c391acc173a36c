package exporter

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/trace"
	"gm/internal/trace/importer"
	"gm/internal/trace/importer/tracetest"
)

// file is a trace in memory.
type file []byte

func (f file) open() (*trace.Reader, error) {
	return trace.NewReader(bytes.NewReader(f), int64(len(f)), "test")
}

// written returns a trace in a format, and the warnings.
func (f file) written(t testing.TB, as Format) (out []byte, warnings []string) {
	t.Helper()
	var b bytes.Buffer
	if err := Export(f.open, nil, as, &b, func(s string) { warnings = append(warnings, s) }); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), warnings
}

// imported makes a trace of a recording.
func imported(t testing.TB, in io.Reader) file {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewWriter(&b, trace.Meta{})
	if err := importer.Import(in, "x", w, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// made writes a trace of rows, in which the codes of texts are indexes of texts.
func made(t testing.TB, meta trace.Meta, texts []string, rows []trace.Event) file {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewWriter(&b, meta)
	for _, text := range texts {
		w.Strings().Code(text)
	}
	var batch trace.Batch
	for _, e := range rows {
		batch.Append(e)
	}
	if err := w.Write(&batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// row is a row, with its texts in place of their codes.
type row struct {
	trace.Event
	pool, stack, tag string
}

// rows returns the rows of a trace. keep reduces a row to the parts that the format carries; it returns false for rows that it does not.
func (f file) rows(t testing.TB, keep func(e *trace.Event) bool) []row {
	t.Helper()
	r, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	text := r.Strings().Text
	var rows []row
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if keep(e) {
			x := row{*e, text(e.Pool), text(e.Stack), text(e.Tag)}
			x.Pool, x.Stack, x.Tag = 0, 0, 0
			rows = append(rows, x)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// largest is the size of the largest recording to test with, in bytes. Larger ones are of the same kinds as bundled ones, and take long.
const largest = 450 << 10

// recordings returns the traces to test with, by name: those of the repository, and those that GM_SHARED names.
func recordings(t testing.TB) map[string]func(testing.TB) file {
	t.Helper()
	all := map[string]func(testing.TB) file{}
	patterns := []string{"../../../testdata/*.parquet", "../../../testdata/captures/*.parquet", "../../../testdata/snapshots/*.gz", "../../../testdata/settings/*.gz"}
	if shared := os.Getenv("GM_SHARED"); shared != "" && !testing.Short() {
		patterns = append(patterns, filepath.Join(shared, "traces", "*.gz"), filepath.Join(shared, "snapshots", "*.gz"))
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.Size() > largest {
				continue
			}
			all[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = func(t testing.TB) file { return recording(t, name) }
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d recordings", len(all))
	}
	return all
}

// known caches the recordings that were read, by name, since all tests read the same ones.
var known sync.Map

func recording(t testing.TB, name string) file {
	t.Helper()
	f, ok := known.Load(name)
	if !ok {
		f = file(tracetest.Read(t, name))
		known.Store(name, f)
	}
	return f.(file)
}

func (f file) meta(t testing.TB) trace.Meta {
	t.Helper()
	r, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	return r.Meta()
}

// TestRoundTrip imports exported traces. They must be unchanged, as far as the format carries them.
func TestRoundTrip(t *testing.T) {
	framework := func(e *trace.Event) bool { return e.Level == trace.LevelFramework }
	for name, load := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := load(t)
			for _, c := range []struct {
				as   Format
				keep func(e *trace.Event) bool
			}{
				{CSV, every},
				{Pickle, func(e *trace.Event) bool {
					e.TimeNS, e.Thread = e.TimeNS/nsPerUS*nsPerUS, 0
					return framework(e)
				}},
				{RMM, func(e *trace.Event) bool {
					e.TimeNS, e.Device, e.Pool, e.Stack, e.Tag = e.TimeNS%day/nsPerUS*nsPerUS, 0, 0, 0, 0
					return framework(e) && bare(e)
				}},
				{STAlloc, func(e *trace.Event) bool {
					e.TimeNS, e.Device, e.Pool, e.Stack, e.Tag, e.Thread = 0, 0, 0, 0, 0, 0
					return framework(e) && bare(e) && e.Op != trace.OpOOM
				}},
			} {
				out, _ := x.written(t, c.as)
				y := imported(t, bytes.NewReader(out))
				if before, after := x.meta(t).AllocConf, y.meta(t).AllocConf; c.as == Pickle && before != after {
					t.Errorf("settings are %q, were %q", after, before)
				}
				want, got := numbered(x.rows(t, c.keep)), numbered(y.rows(t, c.keep))
				if diff := firstDifference(want, got); diff != "" {
					t.Errorf("%s: %s", c.as, diff)
				}
			}
		})
	}
}

// every keeps rows whole, but for the tag that gm derives: an export has it, and so has what is imported from it.
func every(e *trace.Event) bool {
	e.Derived = 0
	return true
}

const day = 24 * 60 * 60 * 1_000_000_000

// bare reduces a row to what an allocator's log records: a block is freed when its memory is reusable.
func bare(e *trace.Event) bool {
	switch e.Op {
	case trace.OpFreeCompleted:
		e.Op = trace.OpFree
	case trace.OpOOM:
		e.Addr = 0
	case trace.OpAlloc, trace.OpFree:
	default:
		return false
	}
	return true
}

// numbered gives the allocations of rows new consecutive ids.
func numbered(rows []row) []row {
	ids := map[int64]int64{0: 0}
	for i := range rows {
		id, known := ids[rows[i].ID]
		if !known {
			id = int64(len(ids))
			ids[rows[i].ID] = id
		}
		rows[i].ID = id
	}
	return rows
}

func firstDifference(want, got []row) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("row %d (-want +got):\n- %+v\n+ %+v", i, want[i], got[i])
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// small is a trace with something of everything.
func small(t *testing.T) file {
	texts := []string{"", "main (a.py:1);f, \"g\" (/x/b.py:20);native", "graph", "epoch\n1", "memory by=nccl", "1.0", "step", "Iteration Index : 7", "pinned"}
	return made(t, trace.Meta{Source: "test", Devices: []string{"H200", "H200"}}, texts, []trace.Event{
		{TimeNS: 1_000_000_500, Op: trace.OpAlloc, ID: 1, Size: 1000, Stack: 1, Thread: 7},
		{TimeNS: 1_000_001_000, Op: trace.OpAlloc, ID: 2, Size: 2000, Addr: 1 << 46, Stream: 5, Pool: 5},
		{TimeNS: 1_000_002_000, Op: trace.OpAlloc, ID: 3, Size: 9 << 20, Addr: 99, Level: trace.LevelDriver, Tag: 4},
		{TimeNS: 1_000_003_000, Op: trace.OpFree, ID: 1, Tag: 3},
		{TimeNS: 1_000_003_000, Op: trace.OpMark, Tag: 6},
		{TimeNS: 1_000_004_000, Op: trace.OpMark, Tag: 7},
		{TimeNS: 1_000_004_000, Op: trace.OpAlloc, ID: 4, Size: 1024, Pool: 2},
		{TimeNS: 1_000_005_000, Op: trace.OpOOM, Size: 1 << 40, Addr: 4096, Stack: 1},
		{TimeNS: 1_000_006_000, Op: trace.OpAlloc, ID: 5, Size: 4 << 20, Addr: 1 << 45, Device: 1, Level: trace.LevelDriver, Tag: 4},
		{TimeNS: 1_000_006_000, Op: trace.OpAlloc, ID: 6, Size: 4 << 20, Addr: 7, Device: 1, Level: trace.LevelDriver, Tag: 8},
		{TimeNS: 1_000_007_000, Op: trace.OpFreeRequested, ID: 2},
		{TimeNS: 1_000_008_000, Op: trace.OpSample, Size: 10, Tag: 8, Level: trace.LevelDriver},
	})
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		as       Format
		want     string
		warnings []string
	}{
		{CSV, `time_ns,op,id,size,addr,device,stream,pool,thread,level,stack,tag,derived,certainty,rule
1000000500,alloc,1,1000,0x0,0,0,,7,framework,"main (a.py:1);f, ""g"" (/x/b.py:20);native",,temporaries,guess,freed before 64 others were made
1000001000,alloc,2,2000,0x400000000000,0,5,1.0,0,framework,,,temporaries,guess,freed before 64 others were made
1000002000,alloc,3,9437184,0x63,0,0,,0,driver,,memory by=nccl,,,
1000003000,free,1,0,0x0,0,0,,0,framework,,epoch 1,,,
1000003000,mark,0,0,0x0,0,0,,0,framework,,step,,,
1000004000,mark,0,0,0x0,0,0,,0,framework,,Iteration Index : 7,,,
1000004000,alloc,4,1024,0x0,0,0,graph,0,framework,,,unknown,none,no rule holds
1000005000,oom,0,1099511627776,0x1000,0,0,,0,framework,"main (a.py:1);f, ""g"" (/x/b.py:20);native",,,,
1000006000,alloc,5,4194304,0x200000000000,1,0,,0,driver,,memory by=nccl,,,
1000006000,alloc,6,4194304,0x7,1,0,,0,driver,,pinned,,,
1000007000,free_requested,2,0,0x0,0,0,,0,framework,,,,,
1000008000,sample,0,10,0x0,0,0,,0,driver,,pinned,,,
`, nil},
		{RMM, `Thread,Time,Action,Pointer,Size,Stream
7,00:00:01.000000,allocate,0x1000000000000,1000,0x0
0,00:00:01.000001,allocate,0x400000000000,2000,0x5
0,00:00:01.000003,free,0x1000000000000,1000,0x0
0,00:00:01.000004,allocate,0x1000000000000,1024,0x0
0,00:00:01.000005,allocate failure,(nil),1099511627776,0x0
0,00:00:01.000006,allocate,0x200000000000,4194304,0x0
`, []string{
			"the allocations of 2 GPUs are in one file: the format does not tell them apart",
			"2 marks are left out: an RMM log has none",
		}},
		{STAlloc, `1 0x1000000000000 1000 0
1 0x400000000000 2000 5
0 0x1000000000000 1000 0
Iteration Index : 1
Iteration Index : 7
1 0x1000000000000 1024 0
1 0x200000000000 4194304 0
`, []string{
			"the allocations of 2 GPUs are in one file: the format does not tell them apart",
			"1 failed requests are left out: a trace of STAlloc has none",
		}},
	} {
		out, warnings := small(t).written(t, c.as)
		if diff := cmp.Diff(c.want, string(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.as, diff)
		}
		if diff := cmp.Diff(c.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.as, diff)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"a.pickle": Pickle, "x/A.PKL": Pickle, "a.csv": CSV, "a.json": Perfetto, "a.parquet": Tensors, "a": "", "": "", "a.log": "", "csv": "",
	} {
		if got := FormatOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
