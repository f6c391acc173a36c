package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/importer/tracetest"
)

const testdata = "../../../testdata"

// openRecording opens a trace, or imports a snapshot.
func openRecording(t testing.TB, file string) *trace.Reader {
	t.Helper()
	return tracetest.Open(t, tracetest.Read(t, file), file)
}

// recordings lists the files of folders that hold recordings.
func recordings(t testing.TB, folders ...string) []string {
	var files []string
	for _, folder := range folders {
		for _, pattern := range []string{"*.parquet", "*.pickle.gz"} {
			found, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	return files
}

// TestRecordings replays PyTorch's allocator on all recordings there are: it must do what PyTorch did, to the byte.
func TestRecordings(t *testing.T) {
	files := recordings(t, testdata, filepath.Join(testdata, "snapshots"), filepath.Join(testdata, "captures"))
	if len(files) < 15 {
		t.Fatalf("%d recordings bundled, want at least 15", len(files))
	}
	if shared := os.Getenv("GM_SHARED"); shared != "" {
		files = append(files, recordings(t, filepath.Join(shared, "traces"), filepath.Join(shared, "snapshots"))...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			verdicts, err := Verify(openRecording(t, file), 0)
			if err != nil {
				t.Fatal(err)
			}
			checkVerdicts(t, verdicts)
		})
	}
}

func checkVerdicts(t *testing.T, verdicts []Verdict) {
	t.Helper()
	if len(verdicts) == 0 {
		t.Error("nothing to compare")
	}
	for _, v := range verdicts {
		if v.Divergence != nil {
			t.Errorf("device %d: %v", v.Device, v.Divergence)
		}
		if v.PeakRecorded != v.PeakReplayed {
			t.Errorf("device %d: peak reserved %d, recorded %d", v.Device, v.PeakReplayed, v.PeakRecorded)
		}
		if v.Allocs == 0 {
			t.Errorf("device %d: no block was compared", v.Device)
		}
	}
}

// settingsRun is the statistics that PyTorch reported for a run, in testdata/settings/runs.json.
type settingsRun struct {
	Name      string `json:"name"`
	Conf      string `json:"conf"`
	Limit     int64  `json:"limit"` // bytes that it was allowed to reserve, 0 for all
	Reserved  int64  `json:"peak_reserved_bytes"`
	Allocated int64  `json:"peak_allocated_bytes"`
}

// TestSettings compares the replay under each setting with a recording of PyTorch under that setting.
func TestSettings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata, "settings", "runs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []settingsRun
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	if len(runs) < 16 {
		t.Fatalf("%d runs, want at least 16", len(runs))
	}
	for _, run := range runs {
		t.Run(run.Name, func(t *testing.T) {
			file := filepath.Join(testdata, "settings", run.Name+".parquet")
			if _, err := os.Stat(file); err != nil {
				file = filepath.Join(testdata, "settings", run.Name+".pickle.gz")
			}
			verdicts, err := Verify(openRecording(t, file), run.Limit)
			if err != nil {
				t.Fatal(err)
			}
			checkVerdicts(t, verdicts)
			if strings.HasPrefix(run.Name, "ring") {
				return // PyTorch counted events that its history no longer had
			}
			checkRun(t, openRecording(t, file), run)
		})
	}
}

// checkRun replays the requests without help from the recorded segments, on a device as large as the process might fill, and
// compares the peaks with PyTorch's account of device 0.
func checkRun(t *testing.T, r *trace.Reader, run settingsRun) {
	programs, err := Load(r)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := allocconf.Parse(run.Conf)
	if err != nil {
		t.Fatal(err)
	}
	dev := sim.New(run.Limit, sim.H200())
	a, err := blocks.NewTorch(dev, conf)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), programs[0], a, dev)
	if err != nil {
		t.Fatal(err)
	}
	if res.OOM != nil {
		t.Errorf("out of memory at row %d", res.OOM.Row)
	}
	if res.Stats.PeakReserved != run.Reserved {
		t.Errorf("peak reserved %d, PyTorch %d", res.Stats.PeakReserved, run.Reserved)
	}
	if res.Stats.PeakAllocated != run.Allocated {
		t.Errorf("peak allocated %d, PyTorch %d", res.Stats.PeakAllocated, run.Allocated)
	}
}
