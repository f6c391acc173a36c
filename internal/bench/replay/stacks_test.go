package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer"
)

// importTo imports a bundled snapshot into a file.
func importTo(t *testing.T, file, snapshot string) {
	t.Helper()
	in, err := os.Open(filepath.Join(testdata, "snapshots", snapshot))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := importer.Import(in, snapshot, w, func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestStacks compares the stacks of some rows with those of the trace, read from a file and from standard input.
func TestStacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "streams.parquet")
	importTo(t, file, "streams.pickle.gz")
	r, err := trace.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[int64]string{}
	err = trace.Each(r, func(row int64, e *trace.Event) error {
		if e.Op == trace.OpAlloc && e.Level == trace.LevelFramework {
			want[row] = r.Strings().Text(e.Stack)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for row := range want {
		rows = append(rows, row, row)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer func(stdin *os.File) { os.Stdin = stdin }(os.Stdin)
	os.Stdin = in
	for _, name := range []string{file, "-"} {
		programs, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		stacks, err := programs[0].Stacks(rows)
		if err != nil {
			t.Fatal(err)
		}
		for row, stack := range want {
			if stack == "" || stacks[row] != stack {
				t.Fatalf("%s: row %d: stack %q, want %q", name, row, stacks[row], stack)
			}
		}
		if none, err := programs[0].Stacks(nil); none != nil || err != nil {
			t.Errorf("of no rows: %v, %v", none, err)
		}
	}
}

// TestNoStacks: programs that were not opened from a file have no stacks, and a missing file is an error.
func TestNoStacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gone.parquet")
	importTo(t, file, "streams.pickle.gz")
	programs, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := programs[0].Stacks([]int64{1}); err == nil {
		t.Error("stacks of a file that is gone")
	}
	r := openRecording(t, filepath.Join(testdata, "snapshots", "streams.pickle.gz"))
	loaded, err := Load(r)
	if err != nil {
		t.Fatal(err)
	}
	if stacks, err := loaded[0].Stacks([]int64{1}); stacks != nil || err != nil {
		t.Errorf("%v, %v", stacks, err)
	}
}
