package input

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/cli"
	"gm/internal/trace/importer/tracetest"
)

// TestOpenTrace opens a trace and a snapshot of it, and counts rows.
func TestOpenTrace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	snapshot := "../../../testdata/snapshots/streams.pickle.gz"
	parquet := filepath.Join(dir, "streams.parquet")
	if err := os.WriteFile(parquet, tracetest.Read(t, snapshot), 0o666); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, name := range []string{snapshot, parquet} {
		in, err := OpenTrace(quiet(), name)
		if err != nil {
			t.Fatal(err)
		}
		if rows[name] = in.Rows(); in.Name() != name {
			t.Errorf("the name of %s is %s", name, in.Name())
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if rows[snapshot] == 0 || rows[snapshot] != rows[parquet] {
		t.Errorf("rows: %v", rows)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestOpenErrors opens what is no trace.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"empty": "nothing in it", "words": "not a recording", "PAR1": "corrupt: truncated", "}(X": "read snapshot",
		"": "is a folder: name a file", "absent": "no such file",
	} {
		path := filepath.Join(dir, name)
		content := map[string]string{"words": "some words", "PAR1": "PAR1", "}(X": "}(X"}[name]
		if name != "" && name != "absent" {
			if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := OpenTrace(quiet(), path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestFolder opens the folder of a job: the error names a trace in it.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for _, rank := range []string{"rank=0", "rank=1"} {
		if err := os.MkdirAll(filepath.Join(dir, "host=a", rank), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "host=a", rank, "trace.parquet"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want := dir + " is a folder: name a trace in it, such as " + dir + "/host=a/rank=0/trace.parquet"
	if _, err := Open(quiet(), dir); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func quiet() *cli.Context { return &cli.Context{Tool: "test", Err: io.Discard} }
