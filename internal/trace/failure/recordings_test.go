package failure_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"gm/internal/trace/failure"
	"gm/internal/trace/importer/tracetest"
)

const testdata = "../../../testdata/"

// TestLimits compares the limits that are found with those that the recorded processes had.
func TestLimits(t *testing.T) {
	var runs []struct {
		Name  string `json:"name"`
		Limit int64  `json:"limit"`
		OOMs  int    `json:"ooms"`
	}
	text, err := os.ReadFile(testdata + "settings/runs.json")
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	if err != nil {
		t.Fatal(err)
	}
	limited := 0
	for _, run := range runs {
		file := testdata + "settings/" + run.Name + ".parquet"
		if _, err := os.Stat(file); err != nil {
			file = testdata + "settings/" + run.Name + ".pickle.gz"
		}
		all := read(t, tracetest.Read(t, file))
		if len(all) != min(run.OOMs, 1) {
			t.Errorf("%s: %d failures, want %d", run.Name, len(all), run.OOMs)
		}
		for _, f := range all {
			limited++
			if f.Cause != failure.Limited || f.Room > run.Limit || f.Most < run.Limit || f.Nth != run.OOMs {
				t.Errorf("%s: %+v, the limit was %d", run.Name, f, run.Limit)
			}
		}
	}
	if limited < 4 {
		t.Errorf("only %d runs had a limit", limited)
	}
}

// TestRecordings looks at the failures of other recordings.
func TestRecordings(t *testing.T) {
	for file, want := range map[string]struct {
		cause failure.Cause
		limit failure.Limit
	}{
		"snapshots/oom.pickle.gz": {failure.Limited, failure.ProcessLimit}, // set_per_process_memory_fraction of 2 GiB
		"captures/oom.parquet":    {failure.Fragmented, failure.NoLimit},   // 1.6 GiB of 139 are free in pieces of up to 36.5 MiB
	} {
		f := read(t, tracetest.Read(t, testdata+file))[0]
		if f.Cause != want.cause || f.Limit != want.limit || f.Stack == "" {
			t.Errorf("%s: %+v", file, f)
		}
		if want.limit == failure.ProcessLimit && (f.Room > 2*gib || f.Most < 2*gib) {
			t.Errorf("%s: a limit from %d to %d", file, f.Room, f.Most)
		}
	}
	for _, pattern := range []string{"*.parquet", "programs/*.parquet", "snapshots/[g-s]*.pickle.gz", "snapshots/compile.pickle.gz"} {
		files, err := filepath.Glob(testdata + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if all := read(t, tracetest.Read(t, file)); filepath.Base(file) != "oom.pickle.gz" && len(all) > 0 {
				t.Errorf("%s: %+v", file, all[0])
			}
		}
	}
}
