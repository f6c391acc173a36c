package main

import (
	"gm/internal/cuda"
	"gm/internal/cuda/ptrmap"
)

// entry is one live request.
type entry struct {
	ptr       cuda.Ptr
	requested int64 // bytes
	taken     int64 // bytes, rounding included
	stream    cuda.Stream
	pool      int32
	flags     uint32
}

// What is special about a live request.
const (
	plain uint32 = 1 << iota // it came from the driver itself, not from the allocator
	lent                     // another stream than its own uses it, too
	inC                      // C served it (small.c)
)

// special says whether a free of the request does more than to return it to the allocator's default pool.
func (e *entry) special() bool { return e.flags != 0 || e.pool != 0 }

// ledger holds the live requests by address. Entries hold no pointers, so that the garbage collector never looks into it.
type ledger = ptrmap.Map[entry]

func newLedger() ledger { return ptrmap.New[entry](14) }
