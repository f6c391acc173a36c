package why

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cuda/sim"
	"gm/internal/trace/importer/tracetest"
)

const testdata = "../../../testdata"

// open returns the programs of a recording, of a snapshot without its stacks.
func open(t testing.TB, file string) []*replay.Program {
	t.Helper()
	if strings.HasSuffix(file, ".parquet") {
		programs, err := replay.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		return programs
	}
	programs, err := replay.Load(tracetest.Open(t, tracetest.Read(t, file), file))
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// recordings lists the bundled files that hold recordings, and those of GM_SHARED.
func recordings(t testing.TB) []string {
	folders := []string{testdata, filepath.Join(testdata, "snapshots"), filepath.Join(testdata, "captures"), filepath.Join(testdata, "settings")}
	if shared := os.Getenv("GM_SHARED"); shared != "" {
		folders = append(folders, filepath.Join(shared, "traces"), filepath.Join(shared, "snapshots"))
	}
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
	if len(files) < 15 {
		t.Fatalf("%d recordings bundled, want at least 15", len(files))
	}
	return files
}

// TestSums: the parts of every allocator on every recording add up to what it reserved at its peak minus what the program requested.
func TestSums(t *testing.T) {
	gpu := bench.GPU{Costs: sim.H200()}
	for _, file := range recordings(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, p := range open(t, file) {
				checkSums(t, p, gpu)
			}
		})
	}
}

func checkSums(t *testing.T, p *replay.Program, gpu bench.GPU) {
	t.Helper()
	specs := bench.AllSpecs()
	for _, spec := range specs { // once for both
		prepared, err := spec.Prepare(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		p = prepared
	}
	accounts, err := ExplainAll(context.Background(), p, specs, gpu, func() {})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := bench.CompareOn(context.Background(), []*replay.Program{p}, specs, gpu, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range accounts {
		if a.Allocator != specs[i].Text || a.Device != p.Device {
			t.Errorf("account %d is of %s on device %d", i, a.Allocator, a.Device)
		}
		if a.Reserved != rows[i].PeakReserved {
			t.Errorf("%s: reserved %d, at the peak %d", a.Allocator, a.Reserved, rows[i].PeakReserved)
		}
		sum := int64(0)
		for _, part := range a.Parts {
			sum += part.Bytes
			if part.Bytes < 0 {
				t.Errorf("%s: %d bytes of %s", a.Allocator, part.Bytes, part.Name)
			}
		}
		if sum != a.Reserved-a.Requested {
			t.Errorf("%s: parts of %d bytes together, %d - %d = %d lost", a.Allocator, sum, a.Reserved, a.Requested, a.Reserved-a.Requested)
		}
		if want := requestedAt(p, a.Row); a.Requested != want {
			t.Errorf("%s: %d bytes requested at row %d, want %d", a.Allocator, a.Requested, a.Row, want)
		}
		checkPins(t, a)
	}
}

// requestedAt returns the bytes that a program holds after a row.
func requestedAt(p *replay.Program, row int64) (n int64) {
	for i, kind := range p.Kinds {
		if int64(p.Rows[i]) > row {
			break
		}
		switch kind {
		case replay.Alloc:
			n += p.Sizes[p.Tensors[i]]
		case replay.Free, replay.Request:
			n -= p.Sizes[p.Tensors[i]]
		}
	}
	return n
}

func checkPins(t *testing.T, a *Account) {
	t.Helper()
	last := a.Reserved
	for _, pin := range a.Pins {
		free := pin.Reserved - pin.Live
		if pin.Live <= 0 || free <= 0 || free > last || pin.Blocks < 1 || pin.AgeNS < 0 {
			t.Errorf("%s: %+v behind one with %d bytes free", a.Allocator, pin, last)
		}
		last = free
	}
	if len(a.Pins) > maxPins {
		t.Errorf("%s: %d pins", a.Allocator, len(a.Pins))
	}
}
