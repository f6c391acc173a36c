package synth

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer"
)

// lifetime is an allocation: its size, stream, and how many others are made before it is freed.
type lifetime struct{ size, stream, others int64 }

// mustWrite writes a trace of a job and returns it.
func mustWrite(t testing.TB, spec, letters string, run Run) []byte {
	t.Helper()
	s, err := ParseStrategy(letters)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Parse(spec, s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := Write(w, job, run, func(int64, int64) {}); err != nil {
		t.Fatalf("%s %s: %v", spec, letters, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lifetimes returns the allocations of a trace and the peak of live bytes.
func lifetimes(t testing.TB, data []byte) (all []lifetime, peak int64) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	index, live := map[int64]int{}, int64(0)
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		switch e.Op {
		case trace.OpAlloc:
			index[e.ID] = len(all)
			all = append(all, lifetime{e.Size, e.Stream, -1})
			live += e.Size
			peak = max(peak, live)
		case trace.OpFreeCompleted:
			i := index[e.ID]
			all[i].others = int64(len(all) - 1 - i)
			live -= all[i].size
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, peak
}

// recorded returns a recording as a trace: a bundled one, or one of the folder GM_SHARED.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join("../../../testdata", name+".parquet")); err == nil {
		return data
	}
	shared := os.Getenv("GM_SHARED")
	if shared == "" {
		t.Skip("GM_SHARED is not set")
	}
	f, err := os.Open(filepath.Join(shared, "traces", name+".pickle.gz"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	snapshot, err := gzip.NewReader(f)
	if err == nil {
		err = importer.Import(io.Reader(snapshot), name, w, func(string) {})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRecorded holds synthetic traces against recordings of PyTorch, allocation by allocation, from the last back into the first step: size,
// stream, and what is allocated until it is freed. Sizes that are not followed are those of CUB's workspaces and FSDP's tables of pointers.
func TestRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		spec, letters string
		steps         int64
	}{
		"opt1.3b-N":            {"opt-1.3b,batch=32,seq=768", "N", 6},
		"opt1.3b-V":            {"opt-1.3b,batch=32,seq=707/375/263/348/291/341/356/619/498/273", "V", 10},
		"opt1.3b-LRV":          {"opt-1.3b,batch=32,seq=707/375/263/348/291/341/356/619/498/273", "LRV", 10},
		"opt13b-LRV":           {"opt-13b,batch=16,seq=707/375/263/348/852/291/943/965", "LRV", 8},
		"opt13b-fsdp4-LRV-r0":  {"opt-13b,batch=16,seq=669/645/460/869/439/491/510/392,ranks=4", "LRV", 8},
		"neox20b-LR":           {"gpt-neox-20b,batch=12,seq=1Ki", "LR", 6},
		"neox20b-LRV":          {"gpt-neox-20b,batch=12,seq=707/375/263/348/852/291/943/965", "LRV", 8},
		"neox20b-fsdp4-LRV-r1": {"gpt-neox-20b,batch=12,seq=405/726/721/434/978/658/1005/614,ranks=4,rank=1", "LRV", 8},
		"gpt2m-V":              {"gpt2-medium,batch=16,seq=924/579/247/135/220/954/724/163/815/837", "V", 10},
		"llama7b8l-RV":         {"llama-7b,layers=8,batch=1,seq=61651/40425/33258/38708/35056", "RV", 5},
	} {
		t.Run(name, func(t *testing.T) {
			want, wantPeak := lifetimes(t, recorded(t, name))
			got, gotPeak := lifetimes(t, mustWrite(t, c.spec, c.letters, Run{Steps: c.steps}))
			if gotPeak != wantPeak {
				t.Errorf("peak of %d bytes, recorded %d", gotPeak, wantPeak)
			}
			compare(t, got, want)
		})
	}
}

// untold is the largest workspace whose size is not followed.
const untold = 1 << 20

// compare compares from the end, but for the twentieth that is the load and the beginning of the first step.
func compare(t *testing.T, got, want []lifetime) {
	n := min(len(got), len(want))
	wrong := 0
	for i := 1; i <= n-n/20; i++ {
		a, b := got[len(got)-i], want[len(want)-i]
		if a.size < untold && b.size < untold && a.others == 0 && b.others == 0 {
			a.size = b.size
		}
		if a == b {
			continue
		}
		if wrong++; wrong < 10 {
			t.Errorf("allocation %d from the end: %+v, recorded %+v", i, a, b)
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d allocations differ", wrong, n)
	}
}
