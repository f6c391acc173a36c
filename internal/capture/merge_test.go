package capture

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// TestNotBefore has a segment come behind the memory in its place, unless that was freed meanwhile, was given far later, or lies elsewhere.
func TestNotBefore(t *testing.T) {
	segment := trace.Event{TimeNS: 100, Op: trace.OpSegmentAlloc, Addr: 0x1000, Size: 0x100}
	row := func(op trace.Op, at int64, addr uint64) trace.Event {
		return trace.Event{Op: op, TimeNS: at, Addr: addr, Size: 1}
	}
	for name, c := range map[string]struct {
		rows []trace.Event
		want int64
	}{
		"nothing":         {nil, 100},
		"memory":          {[]trace.Event{row(trace.OpAlloc, 107, 0x1000)}, 107},
		"mapped memory":   {[]trace.Event{row(trace.OpSegmentMap, 107, 0x10ff), row(trace.OpSegmentMap, 105, 0x1000)}, 107},
		"earlier":         {[]trace.Event{row(trace.OpAlloc, 90, 0x1000)}, 100},
		"below":           {[]trace.Event{row(trace.OpAlloc, 107, 0xfff)}, 100},
		"above":           {[]trace.Event{row(trace.OpAlloc, 107, 0x1100)}, 100},
		"freed":           {[]trace.Event{row(trace.OpAlloc, 107, 0x1000), row(trace.OpSegmentUnmap, 108, 0x1000), row(trace.OpAlloc, 109, 0x1000)}, 107},
		"freed elsewhere": {[]trace.Event{row(trace.OpFreeCompleted, 106, 0x1100), row(trace.OpAlloc, 107, 0x1000)}, 107},
		"at the latest":   {[]trace.Event{row(trace.OpAlloc, 100+int64(leastJump), 0x1000)}, 100 + int64(leastJump)},
		"far later":       {[]trace.Event{row(trace.OpAlloc, 101+int64(leastJump), 0x1000)}, 100},
	} {
		m := merger{rows: new(trace.Batch)}
		for _, e := range c.rows {
			m.rows.Append(e)
		}
		if got := m.notBefore(segment); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		tensor := segment
		if tensor.Op = trace.OpAlloc; m.notBefore(tensor) != 100 {
			t.Errorf("%s: a tensor waits", name)
		}
	}
}

// TestLate counts rows that are over a second late.
func TestLate(t *testing.T) {
	m := merger{last: 2 * lateBy}
	for _, late := range []int64{-1, 0, lateBy, lateBy + 1, lateBy + 5} {
		if err := m.append(trace.Event{TimeNS: m.last - late}); err != nil {
			t.Fatal(err)
		}
	}
	if m.late != 2 || m.latest != lateBy+5 || m.count != 5 {
		t.Errorf("%d of %d rows are late, by %d at most", m.late, m.count, m.latest)
	}
}

// recordedAt is a process whose journal waits with a request at each of the times.
func recordedAt(t *testing.T, times ...int64) *process {
	t.Helper()
	p := quiet(t.TempDir())
	p.journal = &journal{name: p.folder + "/none"}
	for i, at := range times {
		p.journal.add(&ring.Record{Kind: ring.Alloc, TimeNS: at, A: uint64(i + 1), B: 1})
	}
	return p
}

// TestMerge merges requests at 10, 20, 30 and 40 with marks, and rows of the framework: in a window, those up to its end, behind the state at its beginning.
func TestMerge(t *testing.T) {
	for _, c := range []struct {
		window window
		marks  []int64
		rows   []int64 // of the framework
		want   []string
	}{
		{window{0, endOfTime}, nil, nil, []string{"10 alloc 1", "20 alloc 2", "30 alloc 3", "40 alloc 4"}},
		{window{0, endOfTime}, []int64{9, 20, 40, 50}, nil,
			[]string{"9 mark", "10 alloc 1", "20 alloc 2", "20 mark", "30 alloc 3", "40 alloc 4", "40 mark", "50 mark"}},
		{window{0, endOfTime}, []int64{20}, []int64{10, 20, 29, 60},
			[]string{"10 alloc 1", "10 alloc 2", "20 alloc 3", "20 mark", "20 alloc 4", "29 alloc 5", "30 alloc 6", "40 alloc 7", "60 alloc 8"}},
		{window{20, 30}, []int64{20, 30}, nil, []string{"20 alloc 1", "20 alloc 2", "20 mark", "30 alloc 3", "30 mark"}},
		{window{50, 60}, []int64{60}, nil, []string{"50 alloc 1", "50 alloc 2", "50 alloc 3", "50 alloc 4", "60 mark"}},
		{window{endOfTime, endOfTime}, nil, nil, nil},
	} {
		driver, err := recordedAt(t, 10, 20, 30, 40).replay()
		if err != nil {
			t.Fatal(err)
		}
		var marks []mark
		for _, at := range c.marks {
			marks = append(marks, mark{at, "step"})
		}
		m, err := newMerger(trace.NewWriter(io.Discard, trace.Meta{}), driver, column.NewStrings(), c.window, marks)
		if err != nil {
			t.Fatal(err)
		}
		var framework trace.Batch
		for i, at := range c.rows {
			framework.Append(trace.Event{Op: trace.OpAlloc, TimeNS: at, ID: int64(i + 1), Size: 1, Level: trace.LevelFramework})
		}
		if err := m.Write(&framework); err != nil {
			t.Fatal(err)
		}
		if err := m.upTo(endOfTime); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range m.batch.Len() {
			text := fmt.Sprintf("%d %v", m.batch.TimeNS[i], m.batch.Op[i])
			if m.batch.ID[i] != 0 {
				text += fmt.Sprintf(" %d", m.batch.ID[i])
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v, marks %v, rows %v: %q, want %q", c.window, c.marks, c.rows, got, c.want)
		}
		if err := driver.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEnter has a block that is freed at the beginning of a window in it.
func TestEnter(t *testing.T) {
	p := recordedAt(t, 10, 15)
	for i, at := range []int64{19, 20} {
		p.journal.add(&ring.Record{Kind: ring.Free, TimeNS: at, A: uint64(i + 1)})
	}
	driver, err := p.replay()
	if err != nil {
		t.Fatal(err)
	}
	defer driver.close()
	m, err := newMerger(trace.NewWriter(io.Discard, trace.Meta{}), driver, column.NewStrings(), window{20, 30}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.upTo(endOfTime); err != nil {
		t.Fatal(err)
	}
	if got, want := described(&m.batch), "alloc 1@2, free 1@2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
