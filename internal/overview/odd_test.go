package overview

import (
	"slices"
	"testing"

	"gm/formats/trace"
)

// TestOddities has traces that do not agree with themselves: all are summed up and drawn, and told of.
func TestOddities(t *testing.T) {
	const day = 24 * 3600 * 1_000_000_000
	alloc := func(id int64, addr uint64, size int64) trace.Event {
		return trace.Event{Op: trace.OpAlloc, ID: id, Addr: addr, Size: size}
	}
	segment := func(op trace.Op, addr uint64, size int64) trace.Event {
		return trace.Event{Op: op, Addr: addr, Size: size}
	}
	at := func(ns int64, e trace.Event) trace.Event { e.TimeNS = ns; return e }
	const tag = 0
	for _, c := range []struct {
		name string
		rows []trace.Event
		want []string
	}{
		{"nothing", []trace.Event{segment(trace.OpSegmentAlloc, 4096, 8192), alloc(1, 4096, 8192)}, nil},
		{"no segments", []trace.Event{alloc(1, 4096, 8192)}, nil},
		{"a clock that jumps", []trace.Event{alloc(1, 4096, 512), at(20413*day, alloc(2, 8192, 512)), at(20413*day+1, trace.Event{Op: trace.OpFree, ID: 1})},
			[]string{"row 1: the clock jumps forward by 20413.0 days"}},
		{"the last time there is", []trace.Event{alloc(1, 4096, 512), at(trace.MaxTime, alloc(2, 8192, 512))},
			[]string{"row 1: the clock jumps forward by 53376.0 days"}},
		{"a block larger than its segment", []trace.Event{segment(trace.OpSegmentAlloc, 4096, 8192), alloc(1, 4096, 8193), alloc(2, 1<<20, 512)},
			[]string{"row 1: a block of 8193 bytes at 0x1000 does not lie in a segment; and 1 more such rows"}},
		{"more given back than taken", []trace.Event{segment(trace.OpSegmentAlloc, 4096, 8192), alloc(1, 4096, 512), segment(trace.OpSegmentFree, 4096, 10000)},
			[]string{"row 2: 10000 bytes of segments are given back, of 8192"}},
		{"the driver's", []trace.Event{
			{Op: trace.OpSegmentFree, Size: 77, Level: trace.LevelDriver}, {Op: trace.OpSegmentUnmap, Size: 78, Level: trace.LevelDriver},
			{Op: trace.OpAlloc, ID: 1, Size: 5, Level: trace.LevelDriver, Tag: tag}},
			[]string{"row 0: 77 bytes of segments are given back, of 0; and 1 more such rows"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _ := timelines(t, write(t, c.rows))
			if got := o.Oddities(); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for _, d := range o.Devices {
				if d.reserved < 0 || d.Driver != nil && (d.Driver.now < 0 || d.Driver.Mappings.AtEnd < 0) {
					t.Errorf("bytes below 0: %+v", d)
				}
			}
		})
	}
}
