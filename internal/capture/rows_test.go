package capture

import (
	"math"
	"strconv"
	"testing"

	"gm/formats/trace"
)

// TestBound forces rows into the limits of a trace.
func TestBound(t *testing.T) {
	const half = trace.MaxTotal / 2
	for _, c := range []struct {
		total      int64 // before
		op         trace.Op
		size, want int64
		addr, at   uint64
	}{
		{0, trace.OpAlloc, 5, 5, 7, 7}, {half - 5, trace.OpAlloc, 5, 5, 0, 0}, {half - 5, trace.OpAlloc, 6, 5, 0, 0}, {half, trace.OpAlloc, 6, 1, 0, 0},
		{half + 3, trace.OpAlloc, 6, 1, 0, 0}, {0, trace.OpOOM, 1, 1, trace.MaxTotal + 1, trace.MaxTotal}, {0, trace.OpOOM, 1, 1, 5, 5},
		{0, trace.OpAlloc, 1, 1, trace.MaxTotal + 1, trace.MaxTotal + 1}, {0, trace.OpAlloc, 16, 16, math.MaxUint64, math.MaxUint64 - 16},
		{0, trace.OpAlloc, 16, 16, math.MaxUint64 - 16, math.MaxUint64 - 16},
	} {
		b, e := rows{total: c.total}, trace.Event{Op: c.op, Size: c.size, Addr: c.addr}
		if b.bound(&e); e.Size != c.want || e.Addr != c.at || b.total != c.total+c.want {
			t.Errorf("%+v: %d bytes at %#x, %d in all", c, e.Size, e.Addr, b.total)
		}
	}
}

// TestTexts replaces new texts once there are too many bytes of them.
func TestTexts(t *testing.T) {
	c := newTexts()
	var known int32
	for range 2 {
		if known = c.code("known"); c.bytes != len("known") {
			t.Errorf("%d bytes", c.bytes)
		}
	}
	c.bytes = maxTextBytes - 1
	last := c.code("last")
	if got := c.strings.Text(last); got != "last" {
		t.Errorf("%q has room", got)
	}
	c.bytes = maxTextBytes
	if c.code("known") != known || c.code("last") != last {
		t.Error("texts that are known are others")
	}
	for _, text := range []string{"more", "and more"} {
		if got := c.strings.Text(c.code(text)); got != beyondTexts {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestMostTexts replaces new texts once there are too many.
func TestMostTexts(t *testing.T) {
	c := newTexts()
	for n := c.strings.Len(); n < maxTexts; n++ {
		c.code(strconv.Itoa(n))
	}
	c.bytes = 0
	if got := c.strings.Text(c.code("one more")); got != beyondTexts {
		t.Errorf("%q behind %d texts", got, c.strings.Len())
	}
}

// TestLiveTimes lets the times of rows go on.
func TestLiveTimes(t *testing.T) {
	l := newLiveRows()
	for _, at := range []int64{10, 5} {
		l.row(trace.Event{Op: trace.OpAlloc, TimeNS: at, ID: at, Size: 1, Level: trace.LevelDriver}, "memory", "", "")
	}
	if v := l.account.Levels(20)[0]; v == nil || l.last != 10 || v.UntilNS != 10 {
		t.Errorf("the last row is at %d, %+v", l.last, v)
	}
}
