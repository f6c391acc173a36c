package layout

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/dsa"
	"gm/internal/plan/check"
	"gm/internal/torch/snapshot"
)

// open returns a reader of the trace that write writes.
func open(t testing.TB, write func(w *trace.Writer) error) *trace.Reader {
	t.Helper()
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{Source: "test"})
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// events is a trace with a tensor of each kind.
func events(w *trace.Writer) error {
	pool := w.Strings().Code("(0,1)")
	var b trace.Batch
	for row, e := range []trace.Event{
		{Op: trace.OpSegmentAlloc, Size: 1 << 21},
		{Op: trace.OpAlloc, ID: 1, Size: 1000},
		{Op: trace.OpAlloc, ID: 2, Size: 500, Stream: 7},
		{Op: trace.OpAlloc, ID: 3, Size: 1 << 20, Level: trace.LevelDriver},
		{Op: trace.OpAlloc, ID: 4, Size: 512, Pool: pool},
		{Op: trace.OpFreeRequested, ID: 2},
		{Op: trace.OpAlloc, ID: 6, Size: 2000, Device: 1},
		{Op: trace.OpFreeCompleted, ID: 2},
		{Op: trace.OpFree, ID: 4},
		{Op: trace.OpAlloc, ID: 7, Size: 400},
		{Op: trace.OpFree, ID: 7},
		{Op: trace.OpFree, ID: 3, Level: trace.LevelDriver},
		{Op: trace.OpFreeRequested, ID: 6, Device: 1},
	} {
		e.TimeNS = int64(row) * 10
		b.Append(e)
	}
	return w.Write(&b)
}

func TestCollect(t *testing.T) {
	r := open(t, events)
	c, err := Collect(r)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := r.Digest()
	if c.Rows != 13 || c.Digest != digest || c.Meta.Source != "test" {
		t.Errorf("%d rows, digest %s, source %s", c.Rows, c.Digest, c.Meta.Source)
	}
	for _, column := range []struct {
		name      string
		got, want []int64
	}{
		{"id", c.ID, []int64{1, 2, 4, 6, 7}},
		{"size", c.Size, []int64{1000, 500, 512, 2000, 400}},
		{"alloc", c.Alloc, []int64{1, 2, 4, 6, 9}},
		{"free", c.Free, []int64{13, 7, 8, 13, 10}},
		{"alloc_ns", c.AllocNS, []int64{10, 20, 40, 60, 90}},
		{"free_ns", c.FreeNS, []int64{120, 70, 80, 120, 100}},
		{"stream", c.Stream, []int64{0, 7, 0, 0, 0}},
		{"live before", c.liveBefore(), []int64{0, 1000, 1500, 2012, 3000}},
	} {
		if !slices.Equal(column.got, column.want) {
			t.Errorf("%s: %v, expected %v", column.name, column.got, column.want)
		}
	}
}

func TestArenas(t *testing.T) {
	c, err := Collect(open(t, events))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		o    Options
		want string
		peak int64
	}{
		{Options{}, "d0:3 d0.p(0,1):1 d1:1", 1536 + 512 + 2048},
		{Options{Align: 1}, "d0:3 d0.p(0,1):1 d1:1", 1500 + 512 + 2000},
		{Options{Streams: Separate}, "d0.s0:2 d0.s7:1 d0.p(0,1).s0:1 d1.s0:1", 1536 + 512 + 512 + 2048},
		{Options{Window: &Window{3, 9}}, "d0.resident:2 d0.p(0,1).iteration:1 d1.resident:1", 1536 + 512 + 2048},
		{Options{Window: &Window{9, 12}}, "d0.resident:1 d1.resident:1 d0.iteration:1", 1024 + 512 + 2048},
		{Options{Window: &Window{13, 13}}, "", 0},
	} {
		p, err := Solve(t.Context(), c, test.o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, a := range p.Arenas {
			names = append(names, a.Name+":"+string(rune('0'+a.Tensors)))
		}
		if got := strings.Join(names, " "); got != test.want || p.Meta.Peak != test.peak || !p.Meta.Optimal {
			t.Errorf("%+v: arenas %s, expected %s; peak %d, expected %d", test.o, got, test.want, p.Meta.Peak, test.peak)
		}
	}
}

func TestSolveErrors(t *testing.T) {
	c, err := Collect(open(t, events))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Solver: "none"}, {Align: -1}, {Periodic: true}} {
		if _, err := Solve(t.Context(), c, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Solve(ctx, c, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSearch(t *testing.T) {
	c, err := Collect(open(t, events))
	if err != nil {
		t.Fatal(err)
	}
	none := errors.New("nothing fits")
	var seen []string
	o := Options{Search: func(ctx context.Context, s dsa.Solver, tasks []Task) ([]dsa.Layout, error) {
		for _, task := range tasks {
			seen = append(seen, fmt.Sprint(task.Arena, task.Problem.Size))
		}
		return nil, none
	}}
	if _, err := Solve(t.Context(), c, o); !errors.Is(err, none) {
		t.Errorf("error %v", err)
	}
	if want := []string{"d0[1000 500 400]", "d0.p(0,1)[512]", "d1[2000]"}; !slices.Equal(seen, want) {
		t.Errorf("%q, expected %q", seen, want)
	}
}

func TestEmptyTrace(t *testing.T) {
	c, err := Collect(open(t, func(*trace.Writer) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if windows := c.Iterations(); windows != nil {
		t.Errorf("iterations %v", windows)
	}
	p, err := Solve(t.Context(), c, Options{})
	if err != nil || p.Meta.Peak != 0 || !p.Meta.Optimal {
		t.Errorf("peak %d, %v", p.Meta.Peak, err)
	}
	checked(t, p, nil)
}

// checked writes a plan and checks it against the trace, which is read again.
func checked(t testing.TB, p *Plan, again *trace.Reader) {
	t.Helper()
	var file bytes.Buffer
	w := plan.NewWriter(&file, p.Meta)
	if err := errors.Join(p.Write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := plan.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Check(r, again); err != nil {
		t.Error(err)
	}
}

// The traces of real jobs, the number of iterations of each, and the ratio of peak to lower bound that the default solver must
// reach.
var realTraces = []struct {
	name       string
	iterations int
	within     float64
}{
	{"generate-N", 0, 1},
	{"googlenet-V", 10, 1},
	{"gpt2m-V", 10, 1},
	{"llama7b8l-RV", 5, 1},
	{"neox20b-LR", 6, 1},
	{"neox20b-LRV", 8, 1},
	{"neox20b-fsdp4-LRV-r1", 8, 1},
	{"opt1.3b-LRV", 10, 1},
	{"opt1.3b-N", 6, 1},
	{"opt1.3b-V", 10, 1},
	{"opt13b-LRV", 8, 1},
	{"opt13b-fsdp4-LRV-r0", 8, 1},
	{"resnet152-V", 12, 1},
}

func TestRealTraces(t *testing.T) {
	dir := os.Getenv("GM_SHARED")
	if dir == "" {
		t.Skip("GM_SHARED is not set")
	}
	for _, c := range realTraces {
		t.Run(c.name, func(t *testing.T) {
			file := importTrace(t, filepath.Join(dir, "traces", c.name+".pickle.gz"))
			read := func() *trace.Reader {
				r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), c.name)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			tensors, err := Collect(read())
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			windows := tensors.Iterations()
			t.Logf("%d tensors, %d iterations, found in %v: %v", tensors.Len(), len(windows), time.Since(start), windows)
			t.Logf("live bytes at their starts: %v", liveAt(tensors, windows))
			if len(windows) != c.iterations {
				t.Errorf("%d iterations, expected %d", len(windows), c.iterations)
			}
			solve := func(o Options) {
				p, err := Solve(t.Context(), tensors, o)
				if err != nil {
					t.Fatal(err)
				}
				ratio := float64(p.Meta.Peak) / float64(p.Meta.LowerBound)
				t.Logf("%d tensors, peak %d, %.6f of the bound, %s, %.3f s", len(p.Member), p.Meta.Peak, ratio, p.Meta.Solver, float64(p.Meta.SolveNS)/1e9)
				if ratio > c.within {
					t.Errorf("peak %d is %.6f of the bound", p.Meta.Peak, ratio)
				}
				checked(t, p, read())
			}
			solve(Options{})
			solve(Options{Streams: Separate})
			if n := len(windows); n > 0 {
				solve(Options{Window: &windows[n-1]})
			}
			for i := range windows {
				solve(Options{Window: &windows[i], Periodic: true})
			}
		})
	}
}

// liveAt returns the bytes that live at the beginning of each window.
func liveAt(c *Tensors, windows []Window) []int64 {
	live := c.liveBefore()
	var at []int64
	for _, w := range windows {
		i, _ := slices.BinarySearch(c.Alloc, w.Lo)
		at = append(at, live[i])
	}
	return at
}

func importTrace(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	if err := errors.Join(snapshot.Import(in, name, w, func(s string) { t.Log(s) }), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
