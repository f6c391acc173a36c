// Package instance reads and writes instances of dynamic storage allocation as google/minimalloc's CSV.
//
// A header names the columns, in any order. Required are id, lower, upper and size: the buffer lives in [lower, upper). As in
// minimalloc, begin and start stand for lower, buffer and buffer_id for id, and end for an upper that is itself part of the life. Optional
// are alignment, offset, the address of a fixed buffer (empty or negative if it is not fixed), and hint, which is ignored. There is no
// quoting. gm adds the columns same_as, the id of a buffer with the same address; next_to, the id of the buffer that this one
// directly follows; and arena: buffers of different arenas share nothing. All other columns are copied to the output.
package instance

import "gm/internal/dsa"

// Instance is a CSV and the problems in it.
type Instance struct {
	Arenas []Arena // in the order of their first buffers

	text    string // the whole input
	columns columns
	rows    int
}

// Arena holds the buffers of one address range.
type Arena struct {
	Name    string // empty when the file has no such column
	Problem dsa.Problem
	Rows    []int32 // of each buffer, counted from 0
}

// Options say how to read an instance.
type Options struct {
	Align  int64 // bytes, of all offsets; sizes are rounded up to it. 0 for the greatest that rounds nothing
	Period int64 // as in dsa.Problem
}

// The limits of the input.
const (
	maxText   = 2 << 30  // bytes, unpacked
	maxLine   = 64 << 10 // bytes
	maxRows   = 50_000_000
	maxArenas = 1 << 16
)
