package changes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"
)

// recordings returns the traces of training runs, by name: those of the repository, and those that GM_SHARED names.
func recordings(t *testing.T) map[string]func() file {
	t.Helper()
	all := map[string]func() file{}
	patterns := []string{"../../../testdata/*.parquet", "../../../testdata/captures/*.parquet", "../../../testdata/snapshots/*.gz"}
	if shared := os.Getenv("GM_SHARED"); shared != "" && !testing.Short() {
		patterns = append(patterns, filepath.Join(shared, "traces", "*.gz"))
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = func() file { return tracetest.Read(t, name) }
		}
	}
	return all
}

// TestNoLeaks checks that none of the recorded runs leaks, except the one that was made to run out of memory.
func TestNoLeaks(t *testing.T) {
	for name, load := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			leaks := 0
			for _, c := range load().read(t, nil) {
				leaks += len(c.Leaks)
				for _, l := range c.Leaks {
					t.Logf("%+v", l)
				}
			}
			if want := map[bool]int{true: 1}[name == "captures/oom.parquet"]; leaks != want {
				t.Errorf("%d leaks, want %d", leaks, want)
			}
		})
	}
}

// leaking rewrites a trace so that one allocation of each iteration, the first of those that choose picks, is never freed. It
// returns the bytes that each iteration then keeps.
func (f file) leaking(t *testing.T, choose func(e *trace.Event) bool) (leaky file, kept []int64) {
	t.Helper()
	o, err := overview.Read(f.open(t))
	if err != nil {
		t.Fatal(err)
	}
	spans := o.Devices[0].Iterations
	keep := map[int64]bool{}
	lastSpan := -1
	freed := f.freed(t)
	each(t, f, func(row int64, e *trace.Event) {
		for i, s := range spans {
			if row >= s.First && row < s.End && i > lastSpan && e.Op == trace.OpAlloc && freed[e.ID] && choose(e) {
				lastSpan = i
				keep[e.ID] = true
				kept = append(kept, e.Size)
			}
		}
	})
	r := f.open(t)
	var b bytes.Buffer
	w := trace.NewWriter(&b, r.Meta())
	var batch trace.Batch
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if keep[e.ID] && e.Op != trace.OpAlloc {
			e.Op, e.ID = trace.OpMark, 0 // so that no row moves
		}
		for _, code := range []*int32{&e.Pool, &e.Stack, &e.Tag} {
			*code = w.Strings().Code(r.Strings().Text(*code))
		}
		batch.Append(*e)
		return nil
	})
	if err := errors.Join(err, w.Write(&batch), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), kept
}

func each(t *testing.T, f file, visit func(row int64, e *trace.Event)) {
	t.Helper()
	err := trace.Each(f.open(t), func(row int64, e *trace.Event) error {
		visit(row, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// freed returns the ids of the allocations that are freed.
func (f file) freed(t *testing.T) map[int64]bool {
	ids := map[int64]bool{}
	each(t, f, func(_ int64, e *trace.Event) {
		if e.Op == trace.OpFree || e.Op == trace.OpFreeCompleted {
			ids[e.ID] = true
		}
	})
	return ids
}

// TestLeaks checks that the allocations that a rewritten recording keeps are found.
func TestLeaks(t *testing.T) {
	for _, c := range []struct {
		name   string
		choose func(e *trace.Event) bool
		sized  bool // the blocks are of one size
	}{
		{"opt13b-LRV.parquet", func(e *trace.Event) bool { return e.Size == 4 }, true},
		{"opt13b-LRV.parquet", func(e *trace.Event) bool { return e.Size > 100<<20 && e.Size < 1<<30 }, false},
		{"opt13b-fsdp4-LRV-r0.parquet", func(e *trace.Event) bool { return e.Stream != 0 && e.Size > 1<<20 }, true},
		{"resnet152-V.parquet", func(e *trace.Event) bool { return e.Size == 4 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaky, kept := file(tracetest.Read(t, filepath.Join("../../../testdata", c.name))).leaking(t, c.choose)
			if len(kept) < 4 {
				t.Fatalf("iterations that keep something: %d", len(kept))
			}
			leaks := leaky.read(t, nil)[0].Leaks
			if len(leaks) != 1 {
				t.Fatalf("%d leaks, want 1: %+v", len(leaks), leaks)
			}
			total := int64(0)
			for _, bytes := range kept[1:] {
				total += bytes
			}
			l := leaks[0]
			if each := total / int64(len(kept)-1); l.Each < each*8/10 || l.Each > each*13/10 {
				t.Errorf("%d bytes leak with each iteration, want about %d", l.Each, each)
			}
			if c.sized != (l.Size > 0) || c.sized && l.Size != kept[1] {
				t.Errorf("blocks of %d bytes leak, want %d", l.Size, kept)
			}
		})
	}
}

// TestLeakOfStack finds a leak of a stack whose blocks have a different size in each iteration. The rate is that of all but the last.
func TestLeakOfStack(t *testing.T) {
	texts := []string{"", "main (a.py:1);keep (b.py:7)", "main (a.py:1);work (b.py:9)", "step"}
	var rows []trace.Event
	id := int64(0)
	for i := range int64(12) {
		rows = append(rows, alloc(id+1, 1000+10*i, 1), alloc(id+2, 5000+i, 2), free(id+2), trace.Event{Op: trace.OpMark, Tag: 3})
		id += 2
	}
	leaks := made(t, texts, rows).read(t, nil)[0].Leaks
	if len(leaks) != 1 || leaks[0].Stack != texts[1] || leaks[0].Size != 0 || leaks[0].Each != 1055 || leaks[0].Grew != 11 || leaks[0].Of != 11 {
		t.Errorf("%+v", leaks)
	}
}

// TestLeakCut: an iteration that ends with the trace has the begin of the next in it, and does not raise the rate.
func TestLeakCut(t *testing.T) {
	texts := []string{"", "main (a.py:1);keep (b.py:7)", "step"}
	var rows []trace.Event
	for i := range int64(6) {
		rows = append(rows, alloc(i+1, 1000, 1), trace.Event{Op: trace.OpMark, Tag: 2})
	}
	last := len(rows) - 1
	rows = slices.Insert(rows, last, alloc(7, 1000, 1))
	leaks := made(t, texts, rows).read(t, nil)[0].Leaks
	if len(leaks) != 1 || leaks[0].Each != 1000 || leaks[0].Grew != 5 || leaks[0].Of != 5 {
		t.Errorf("%+v", leaks)
	}
}
