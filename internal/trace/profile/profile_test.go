package profile

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"gm/formats/trace"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// recording imports a bundled snapshot.
func recording(t *testing.T, name string) []byte {
	t.Helper()
	return tracetest.Read(t, filepath.Join("../../../testdata", name))
}

func open(t *testing.T, file []byte) *trace.Reader { return tracetest.Open(t, file, "test") }

// read makes the profile of a trace, writes it, and reads it back.
func read(t *testing.T, file []byte, at *int64) (*profile.Profile, *overview.Overview) {
	t.Helper()
	o, err := overview.Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tags.Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	made, err := Read(open(t, file), o, labels, at)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := made.Write(&out); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

// sums adds up the samples: the total, and the bytes in use by the values of a label.
func sums(p *profile.Profile, label string) (all [values]int64, inUse map[string]int64) {
	inUse = map[string]int64{}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			all[i] += v
		}
		inUse[s.Label[label][0]] += s.Value[inuseSpace]
	}
	return all, inUse
}

// TestPeak checks that the bytes in use are the overview's peak, and that all allocations count as allocated.
func TestPeak(t *testing.T) {
	for _, name := range []string{"snapshots/gpt2.pickle.gz", "snapshots/streams.pickle.gz", "settings/two-devices.pickle.gz"} {
		t.Run(name, func(t *testing.T) {
			p, o := read(t, recording(t, name), nil)
			all, devices := sums(p, "device")
			allocs, live, ordinals := int64(0), int64(0), map[string]int64{}
			for _, d := range o.Devices {
				allocs += d.Allocs
				live += d.PeakLive
				ordinals[string(rune('0'+d.Ordinal))] = d.PeakLive
			}
			if all[allocObjects] != allocs || all[inuseSpace] != live {
				t.Errorf("%d allocated, %d bytes in use, want %d and %d", all[allocObjects], all[inuseSpace], allocs, live)
			}
			if diff := cmp.Diff(ordinals, devices); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAt checks that blocks that are never freed are in use at the last row.
func TestAt(t *testing.T) {
	file := recording(t, "snapshots/gpt2.pickle.gz")
	_, o := read(t, file, nil)
	last := o.Rows - 1
	p, _ := read(t, file, &last)
	all, byTag := sums(p, "tag")
	if all[inuseObjects] != o.Devices[0].Unfreed {
		t.Errorf("%d in use, want %d", all[inuseObjects], o.Devices[0].Unfreed)
	}
	if byTag[tags.Parameters] != 327650304 {
		t.Errorf("%d bytes of parameters", byTag[tags.Parameters])
	}
}

// TestDriver checks the driver's rows of a trace without a framework. A pool holds no more than it obtained.
func TestDriver(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	var b trace.Batch
	for _, e := range []struct {
		op       trace.Op
		id, size int64
		tag      string
	}{
		{trace.OpAlloc, 1, 500, "context"},
		{trace.OpAlloc, 2, 70, "pinned by=pytorch"},
		{trace.OpSegmentAlloc, 0, 64, "pool by=rapids"},
		{trace.OpAlloc, 3, 50, "pool by=rapids"},
		{trace.OpSegmentFree, 0, 64, "pool by=rapids"},
	} {
		b.Append(trace.Event{Op: e.op, ID: e.id, Size: e.size, Level: trace.LevelDriver, Tag: w.Strings().Code(e.tag)})
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ := read(t, out.Bytes(), nil)
	all, byTag := sums(p, "tag")
	if diff := cmp.Diff(map[string]int64{"context": 500, "pool by=rapids": 64}, byTag); diff != "" || all[allocSpace] != 564 {
		t.Errorf("%v\n%s", all, diff)
	}
}

func TestFrame(t *testing.T) {
	for frame, want := range map[string]struct {
		title, file string
		line        int64
	}{
		"forward (/a/b/gpt.py:12)":           {"gpt.forward", "/a/b/gpt.py", 12},
		"<module> (/a/train.py:3)":           {"train", "/a/train.py", 3},
		"<lambda> (/a/train.py:3)":           {"train.lambda", "/a/train.py", 3},
		"at::empty(int, (anonymous)) (??:0)": {"at::empty(int, (anonymous))", "", 0},
		"main (/a/x.cpp:7)":                  {"main", "/a/x.cpp", 7},
		"f (unknown":                         {"f (unknown", "", 0},
		"f (x:y)":                            {"f (x:y)", "", 0},
		"(no stack)":                         {"(no stack)", "", 0},
	} {
		f, line := parseFrame(frame)
		if f.title() != want.title || f.file != want.file || line != want.line {
			t.Errorf("%s: %q of %q, line %d", frame, f.title(), f.file, line)
		}
	}
}
