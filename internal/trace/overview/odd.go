package overview

import (
	"fmt"

	"gm/formats/trace"
	"gm/internal/trace/recording"
)

// odd is what a trace has that a sound one has not, each kind with the first row.
type odd struct {
	clock recording.Clock
	less  oddity // more is given back than there was
	out   oddity // blocks that lie in no segment

	noted  int // requests of all devices
	listed int // streams, steps and failed requests, which are kept one by one
}

// maxListed bounds them.
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

// text tells of the rows in a line; "" if there are none.
func (o *oddity) text() string {
	if o.count < 2 {
		return o.first
	}
	return fmt.Sprintf("%s; and %d more such rows", o.first, o.count-1)
}

// Oddities tells in words, a line for each kind, where the trace does not agree with itself, so that figures are to be taken with care.
func (o *Overview) Oddities() []string {
	var all []string
	for _, text := range []string{o.odd.clock.Forward(), o.odd.less.text(), o.odd.out.text()} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// takeBack takes bytes away from what there is, but no more than that.
func (o *odd) takeBack(from *int64, bytes int64, row int64, what string) {
	if bytes > *from {
		o.less.add(row, "%d bytes of %s are given back, of %d", bytes, what, *from)
		bytes = *from
	}
	*from -= bytes
}

// follow follows the segments of a framework's allocator, and finds blocks that lie in none.
func (o *odd) follow(ranges *recording.Ranges, e *trace.Event, row int64) {
	ranges.Add(e)
	if e.Op == trace.OpAlloc && e.Addr != 0 && ranges.Known() && !ranges.Hold(e.Addr, e.Size) {
		o.out.add(row, "a block of %d bytes at %#x does not lie in a segment", e.Size, e.Addr)
	}
}
