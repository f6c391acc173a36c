package capture

import (
	"testing"

	"gm/formats/trace"
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
