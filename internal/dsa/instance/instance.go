// Package instance reads and writes instances of dynamic storage allocation as google/minimalloc's CSV.
//
// A header names the columns, in any order. Required are id, lower, upper and size: the buffer lives in [lower, upper). As
// there, begin and start stand for lower, buffer and buffer_id for id, and end for an upper that is part of the life. Optional are
// alignment, offset, the address of a buffer that is fixed (none when empty or negative), and hint, which is not used. There is no
// quoting. Columns of our own are same_as, the id of the buffer whose address is shared, next_to, the id of the buffer that is
// followed directly, and arena: buffers of different arenas share nothing. All others are carried over to the output.
package instance

import "gm/internal/dsa"

// Instance is a CSV and the problems in it.
type Instance struct {
	Arenas []Arena // in the order of their first buffers

	text    string // the whole input
	columns columns
	rows    int
}

// Arena is the buffers of one address range.
type Arena struct {
	Name    string // empty when the file has no such column
	Problem dsa.Problem
	Rows    []int32 // of each buffer, counted from 0
}

// Options say how to read an instance.
type Options struct {
	Align  int64 // bytes, of all offsets; sizes are rounded up to it. 0 for the greatest that loses nothing
	Period int64 // as in dsa.Problem
}

// The bounds of what is read.
const (
	maxText   = 2 << 30  // bytes, unpacked
	maxLine   = 64 << 10 // bytes
	maxRows   = 50_000_000
	maxArenas = 1 << 16
)
