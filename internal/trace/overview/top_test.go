package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// readTop returns what is live at the moments of a trace with these rows.
func readTop(t *testing.T, n int, rows ...trace.Event) []*Top {
	t.Helper()
	file := write(t, rows)
	o, err := Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tags.Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ReadTop(open(t, file), o, Look{Groups: n, Tags: labels})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReadTop(t *testing.T) {
	f, g := code("main;f"), code("main;g")
	all := readTop(t, 2,
		trace.Event{Op: trace.OpSegmentAlloc, Size: 20 << 10},
		trace.Event{Op: trace.OpAlloc, ID: 1, Size: 4096, Stack: f},
		given(trace.OpAlloc, 2, 1<<30, "context"),
		trace.Event{TimeNS: 5, Op: trace.OpAlloc, ID: 3, Size: 4097, Stack: g, Stream: 7},
		trace.Event{TimeNS: 5, Op: trace.OpAlloc, ID: 4, Size: 2047},
		trace.Event{TimeNS: 5, Op: trace.OpFreeRequested, ID: 3},
		trace.Event{TimeNS: 6, Op: trace.OpOOM, Size: 99, Addr: 3},
		trace.Event{TimeNS: 6, Op: trace.OpFreeCompleted, ID: 3},
		trace.Event{TimeNS: 7, Op: trace.OpOOM, Size: 100, Addr: 4, Stack: g},
		trace.Event{TimeNS: 8, Op: trace.OpFree, ID: 1},
	)
	want := []*Top{{Level: "framework", HasStacks: true, Moments: []*Moment{
		{
			What: "peak", Row: 4, TimeNS: 5, Live: 10240, Blocks: 3, Reserved: 20480, HasStacks: true,
			Stacks:   []Group{{"main;g", 4097, 1, 4097. / 10240}, {"main;f", 4096, 1, 0.4}},
			Requests: []Group{{"4.00 KiB on stream 7", 4097, 1, 4097. / 10240}, {"4 KiB on stream 0", 4096, 1, 0.4}},
			Streams:  []Group{{"0", 6143, 2, 6143. / 10240}, {"7", 4097, 1, 4097. / 10240}},
			Tags:     []Group{{"temporaries (guess)", 8193, 2, 8193. / 10240}, {"unknown", 2047, 1, 2047. / 10240}},
			Rules: []Group{
				{"temporaries (guess): freed before 64 others were made", 8193, 2, 8193. / 10240}, {"unknown: no rule holds", 2047, 1, 2047. / 10240},
			},
			Kinds:   []Group{},
			Classes: []Group{{"up to 4 KiB", 6143, 2, 6143. / 10240}, {"over 4 KiB, up to 32 KiB", 4097, 1, 4097. / 10240}},
		},
		{
			What: "oom", Row: 8, TimeNS: 7, Live: 6143, Blocks: 2, Reserved: 20480, HasStacks: true,
			Failed:   &Failed{Size: 100, Free: 4, Stack: "main;g"},
			Stacks:   []Group{{"main;f", 4096, 1, 4096. / 6143}, {"", 2047, 1, 2047. / 6143}},
			Requests: []Group{{"4 KiB on stream 0", 4096, 1, 4096. / 6143}, {"2.00 KiB on stream 0", 2047, 1, 2047. / 6143}},
			Streams:  []Group{{"0", 6143, 2, 1}},
			Tags:     []Group{{"temporaries (guess)", 4096, 1, 4096. / 6143}, {"unknown", 2047, 1, 2047. / 6143}},
			Rules: []Group{
				{"temporaries (guess): freed before 64 others were made", 4096, 1, 4096. / 6143}, {"unknown: no rule holds", 2047, 1, 2047. / 6143},
			},
			Kinds:   []Group{},
			Classes: []Group{{"up to 4 KiB", 6143, 2, 1}},
		},
	}}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// TestReadTopOfDriver checks that, without rows of a framework, the driver's rows count if they are device memory of their own.
func TestReadTopOfDriver(t *testing.T) {
	all := readTop(t, 9,
		given(trace.OpAlloc, 1, 500, "context"),
		given(trace.OpAlloc, 2, 1<<30, "pinned by=pytorch"),
		given(trace.OpSegmentAlloc, 0, 60, "pool by=rapids"),
		given(trace.OpSegmentAlloc, 0, 40, "pool by=rapids"),
		given(trace.OpAlloc, 3, 90, "pool by=rapids"),
		given(trace.OpSegmentFree, 0, 40, "pool by=rapids"),
	)
	if len(all) != 1 || all[0].Level != "driver" || len(all[0].Moments) != 1 {
		t.Fatalf("%+v", all)
	}
	m := all[0].Moments[0]
	want := []Group{{"context", 500, 1, 500. / 600}, {"pool by=rapids", 100, 1, 100. / 600}}
	if diff := cmp.Diff(want, m.Kinds); diff != "" || m.Live != 600 || m.HasStacks {
		t.Errorf("%d bytes live, stacks %t\n%s", m.Live, m.HasStacks, diff)
	}
}

// TestReadTopRefused checks that the driver's last refusal is shown if no request of the framework failed.
func TestReadTopRefused(t *testing.T) {
	all := readTop(t, 9,
		trace.Event{Op: trace.OpAlloc, ID: 1, Size: 80},
		given(trace.OpOOM, 0, 7, "memory by=pytorch"),
		given(trace.OpOOM, 0, 8, "physical by=nccl"),
		trace.Event{TimeNS: 9, Op: trace.OpFree, ID: 1},
	)
	m := all[0].Moments[1]
	if m.Row != 2 || m.Live != 80 || m.Failed.Size != 8 || m.Failed.By != "physical by=nccl" {
		t.Errorf("%+v, failed %+v", m, m.Failed)
	}
}

func TestClass(t *testing.T) {
	for size, want := range map[int64]string{
		1: "up to 4 KiB", 4096: "up to 4 KiB", 4097: "over 4 KiB, up to 32 KiB", 2 << 20: "over 256 KiB, up to 2 MiB",
		trace.MaxSize: "over 32 TiB, up to 256 TiB",
	} {
		if got := ClassName(SizeClass(size)); got != want {
			t.Errorf("%d bytes are %q, want %q", size, got, want)
		}
	}
}
