package snapshot

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gm/formats/trace"
)

// sharedFiles returns the snapshots of real jobs that are too large for the repository, as a list of gzipped files
// below the directory that GM_SHARED names.
func sharedFiles(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv("GM_SHARED")
	if dir == "" {
		t.Skip("GM_SHARED is not set")
	}
	var files []string
	for _, sub := range []string{"traces", "snapshots"} {
		found, err := filepath.Glob(filepath.Join(dir, sub, "*.pickle.gz"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("no snapshots in", dir)
	}
	return files
}

func openShared(t testing.TB, name string) io.Reader {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sharedCounts are the events of each kind in some of the files, as Python counts them.
var sharedCounts = map[string]map[trace.Op]int{
	"generate-N.pickle.gz": {
		trace.OpSegmentAlloc: 172, trace.OpAlloc: 371615, trace.OpFreeRequested: 371224, trace.OpFreeCompleted: 371224,
	},
	"opt13b-fsdp4-LRV-r0.pickle.gz": {
		trace.OpSegmentAlloc: 320, trace.OpAlloc: 51979, trace.OpFreeRequested: 50847, trace.OpFreeCompleted: 50847,
	},
	"gpt2-expandable.pickle.gz": {
		trace.OpSegmentMap: 69, trace.OpAlloc: 1863, trace.OpFreeRequested: 1631, trace.OpFreeCompleted: 1631, trace.OpMark: 12,
	},
	"oom.pickle.gz": {
		trace.OpSegmentAlloc: 93, trace.OpAlloc: 152, trace.OpFreeRequested: 151, trace.OpFreeCompleted: 151,
		trace.OpOOM: 1, trace.OpSegmentFree: 92,
	},
}

// countRecords counts the events of each kind.
func countRecords(t *testing.T, r *recording) map[trace.Op]int {
	t.Helper()
	counts := map[trace.Op]int{}
	for _, h := range r.devices {
		for _, e := range records(t, h) {
			counts[e.op]++
		}
	}
	if n := len(r.marks); n > 0 {
		counts[trace.OpMark] = n
	}
	return counts
}

// TestShared imports the snapshots of real jobs. All were recorded from the start of their process, and none may
// give a warning.
func TestShared(t *testing.T) {
	for _, name := range sharedFiles(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			w := trace.NewWriter(io.Discard, trace.Meta{})
			err := Import(openShared(t, name), name, w, func(s string) { t.Error("warning:", s) })
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			want := sharedCounts[filepath.Base(name)]
			if want == nil {
				return
			}
			got := countRecords(t, decodeShared(t, name))
			for op, n := range want {
				if got[op] != n {
					t.Errorf("%d rows of %v, want %d", got[op], op, n)
				}
			}
			if len(got) != len(want) {
				t.Errorf("counts are %v, want %v", got, want)
			}
		})
	}
}

func BenchmarkImport(b *testing.B) {
	for _, name := range sharedFiles(b) {
		b.Run(filepath.Base(name), func(b *testing.B) {
			for b.Loop() {
				w := trace.NewWriter(io.Discard, trace.Meta{})
				if err := Import(openShared(b, name), name, w, func(string) {}); err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
