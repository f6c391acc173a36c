package engine

import (
	"cmp"
	"slices"

	"gm/internal/cuda"
)

// readers are the copies in, in their order, that may still read released slots, and that the copies out do not wait
// for yet.
type readers []reader

type reader struct {
	copy int64 // counted from 1
	done cuda.Event
}

// add enters a copy, most often the last one.
func (r *readers) add(one reader) {
	at := len(*r)
	for at > 0 && (*r)[at-1].copy > one.copy {
		at--
	}
	*r = slices.Insert(*r, at, one)
}

// until returns the copies up to one that is among them.
func (r readers) until(copy int64) readers {
	i, _ := slices.BinarySearchFunc(r, copy, func(r reader, copy int64) int { return cmp.Compare(r.copy, copy) })
	return r[:i+1]
}
