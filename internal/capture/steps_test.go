package capture

import (
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/capture/live"
	"gm/internal/capture/ring"
	"gm/internal/torch/snapshot"
)

func TestWindow(t *testing.T) {
	marks := []mark{{10, "a"}, {20, "b"}, {30, "c"}}
	for _, c := range []struct {
		steps *Steps
		want  window
		marks []mark
	}{
		{nil, window{0, endOfTime}, marks},
		{&Steps{0, 2}, window{0, 20}, marks[:2]},
		{&Steps{1, 3}, window{10, 30}, marks[1:]},
		{&Steps{2, 4}, window{20, endOfTime}, marks[2:]},
		{&Steps{3, 4}, window{30, endOfTime}, nil},
		{&Steps{4, 5}, window{endOfTime, endOfTime}, nil},
	} {
		if got, within := c.steps.window(marks); got != c.want || !slices.Equal(within, c.marks) {
			t.Errorf("%v: %v and %v, want %v and %v", c.steps, got, within, c.want, c.marks)
		}
	}
}

func TestFailed(t *testing.T) {
	broken := func(pid int) *process {
		return &process{pid: pid, broken: true, lacks: []mark{{0, "no room"}}}
	}
	for _, c := range []struct {
		s    Session
		want string
	}{
		{Session{processes: []*process{{pid: 1}}}, ""},
		{Session{processes: []*process{{pid: 1}, broken(2)}}, "the recording of process 2 is incomplete: no room"},
		{Session{odd: 1, waiting: 2}, "the recording is incomplete: files that could not be read: 3"},
		{Session{processes: []*process{broken(1), broken(2)}},
			"the recording is incomplete: processes that could not be recorded to their end: 2; files that could not be read: 0"},
		{Session{processes: []*process{broken(1)}, odd: 1},
			"the recording is incomplete: processes that could not be recorded to their end: 1; files that could not be read: 1"},
	} {
		got := ""
		if err := c.s.Failed(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestIs tells a process from one that had its number before.
func TestIs(t *testing.T) {
	p := &process{pid: 7}
	p.live.startNS = 5
	for _, c := range []struct {
		of   live.Process
		want bool
	}{{live.Process{PID: 7, StartNS: 5}, true}, {live.Process{PID: 7, StartNS: 4}, false}, {live.Process{PID: 8, StartNS: 5}, false}} {
		if p.is(c.of) != c.want {
			t.Errorf("%v: %v", c.of, !c.want)
		}
	}
}

// TestUsesCUDA checks that each trace of CUDA or PyTorch tells, and nothing else.
func TestUsesCUDA(t *testing.T) {
	header, history, greeting := &process{header: new(ring.Header)}, &process{history: new(snapshot.Join)}, &process{}
	greeting.greeting.Torch = "2.11"
	for i, p := range []*process{header, history, greeting} {
		if !p.usesCUDA() {
			t.Errorf("process %d does not use CUDA", i)
		}
	}
	if (&process{pid: 1}).usesCUDA() {
		t.Error("a process without anything uses CUDA")
	}
}

func TestParseSteps(t *testing.T) {
	for _, wrong := range []string{"", "3", "3:", ":3", "x:6", "3:x", "-1:2", "3:3", "4:3", "1:2:3"} {
		if s, err := ParseSteps(wrong); err == nil {
			t.Errorf("%q: %v", wrong, s)
		}
	}
	for _, right := range []string{"0:1", "3:4", "3:60"} {
		if s, err := ParseSteps(right); err != nil || s.String() != right {
			t.Errorf("%q: %v, %v", right, s, err)
		}
	}
}

// TestEarly recreates what lived before a window: what pools hold, blocks, and mappings.
func TestEarly(t *testing.T) {
	var before trace.Batch
	early := newEarly()
	for _, e := range []trace.Event{
		{Op: trace.OpSegmentAlloc, Pool: 1, Size: 5}, {Op: trace.OpSegmentAlloc, Pool: 1, Size: 4}, {Op: trace.OpSegmentFree, Pool: 1, Size: 2},
		{Op: trace.OpSegmentAlloc, Pool: 2, Size: 5}, {Op: trace.OpSegmentFree, Pool: 2, Size: 5}, {Op: trace.OpAlloc, ID: 1, Size: 3},
		{Op: trace.OpAlloc, ID: 2, Size: 8}, {Op: trace.OpFree, ID: 1, Size: 3}, {Op: trace.OpSegmentMap, Addr: 1, Size: 6},
		{Op: trace.OpSegmentMap, Addr: 2, Size: 9}, {Op: trace.OpSegmentUnmap, Addr: 1, Size: 6},
	} {
		early.take(e)
	}
	for _, e := range early.rows() {
		before.Append(e)
	}
	if got, want := described(&before), "segment_alloc 7, alloc 8, segment_map 9@2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
