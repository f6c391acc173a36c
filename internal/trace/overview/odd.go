package overview

import (
	"fmt"

	"gm/formats/trace"
	"gm/internal/trace/recording"
)

// odd counts inconsistencies of a trace, by kind, with the first row of each.
type odd struct {
	clock recording.Clock
	less  oddity // more is freed than there was
	out   oddity // blocks that lie in no segment

	noted  int // number of requests of all devices
	listed int // number of streams, steps and failed requests, which are kept individually
}

// maxListed bounds listed.
const maxListed = 1 << 20

// oddity counts the rows of one kind.
type oddity struct {
	count int64
	first string
}

func (o *oddity) add(row int64, format string, args ...any) {
	if o.count++; o.count == 1 {
		o.first = fmt.Sprintf("row %d: ", row) + fmt.Sprintf(format, args...)
	}
}

// text describes the rows in a line; "" if there are none.
func (o *oddity) text() string {
	if o.count < 2 {
		return o.first
	}
	return fmt.Sprintf("%s; and %d more such rows", o.first, o.count-1)
}

// Oddities describes where the trace is inconsistent, one line per kind. The figures of such a trace may be wrong.
func (o *Overview) Oddities() []string {
	var all []string
	for _, text := range []string{o.odd.clock.Forward(), o.odd.less.text(), o.odd.out.text()} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// takeBack subtracts bytes from a sum, but not below 0.
func (o *odd) takeBack(from *int64, bytes int64, row int64, what string) {
	if bytes > *from {
		o.less.add(row, "%d bytes of %s are released, of %d", bytes, what, *from)
		bytes = *from
	}
	*from -= bytes
}

// follow tracks the segments of a framework's allocator, and finds blocks that lie in none.
func (o *odd) follow(ranges *recording.Ranges, e *trace.Event, row int64) {
	ranges.Add(e)
	if e.Op == trace.OpAlloc && e.Addr != 0 && ranges.Known() && !ranges.Hold(e.Addr, e.Size) {
		o.out.add(row, "a block of %d bytes at %#x does not lie in a segment", e.Size, e.Addr)
	}
}
