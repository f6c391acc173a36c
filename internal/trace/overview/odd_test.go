package overview

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/iterations"
)

// TestOddities checks that inconsistent traces are summarized and drawn, and that their oddities are reported.
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
			[]string{"row 2: 10000 bytes of segments are released, of 8192"}},
		{"the driver's", []trace.Event{
			{Op: trace.OpSegmentFree, Size: 77, Level: trace.LevelDriver}, {Op: trace.OpSegmentUnmap, Size: 78, Level: trace.LevelDriver},
			{Op: trace.OpAlloc, ID: 1, Size: 5, Level: trace.LevelDriver, Tag: tag}},
			[]string{"row 0: 77 bytes of segments are released, of 0; and 1 more such rows"}},
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

// TestListed checks traces with too many of the things that are kept individually: steps and failed requests.
func TestListed(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	b := &trace.Batch{}
	for range maxListed / 2 {
		b.Append(trace.Event{Op: trace.OpMark, Tag: w.Strings().Code(iterations.Step)})
		b.Append(trace.Event{Op: trace.OpOOM})
	}
	b.Append(trace.Event{Op: trace.OpOOM, Level: trace.LevelDriver})
	if err := errors.Join(w.Write(b), w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := Read(open(t, out.Bytes()))
	if want := "row 1048576: more than 1048576 streams, steps and failed requests"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestLargest compares the largest sizes with those of all.
func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	d := newDevice(0, 1, &odd{})
	count := map[int64]int64{}
	for range 5000 {
		size := 1 + rng.Int64N(40)*rng.Int64N(40)
		d.largest(size)
		count[size]++
	}
	sizes := slices.Sorted(maps.Keys(count))
	for i, s := range d.Largest {
		if want := sizes[len(sizes)-1-i]; s.Bytes != want || s.Count != count[want] {
			t.Errorf("%d: %+v, want %d bytes %d times", i, s, want, count[want])
		}
	}
	if len(d.Largest) != maxLargest {
		t.Errorf("%d sizes", len(d.Largest))
	}
}

// TestRequests checks that the first requests of each device are kept, up to the limit for all devices.
func TestRequests(t *testing.T) {
	noted := iterations.MaxInAll - 2
	var r requests
	for row := range int64(4) {
		r.add(&trace.Event{Size: 8}, row, 0, &noted)
	}
	if len(r.sizes) != 2 || r.end != 2 || noted != iterations.MaxInAll {
		t.Errorf("%d requests up to row %d", len(r.sizes), r.end)
	}
}
