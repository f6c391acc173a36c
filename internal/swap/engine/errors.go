package engine

import (
	"errors"
	"fmt"
)

// What an engine refuses to do.
var (
	ErrTicket = errors.New("no such ticket")              // it was never given out, or it was dropped
	ErrNotIn  = errors.New("nothing was copied in")       // Ready before In
	ErrClosed = errors.New("the swapper is closed")       // any call after Close
	ErrNone   = errors.New("no memory at address 0")      // Out from or In to it
	ErrSize   = errors.New("a size that no memory has")   // Out of 0 bytes or less
	ErrBudget = errors.New("host memory of no full page") // Open with too little

	ErrInPlace   = errors.New("the GPU does not use pinned memory at the address that it has on the host")
	ErrAllowance = errors.New("other GPUs of this process have the rest of the host memory that it may pin")
)

// FullError says that the host has no room for a copy out. Sizes are in bytes.
type FullError struct {
	Asked   int64
	Live    int64 // held by tickets
	Arena   int64 // that the engine has for them: its budget, or the part of it that could be pinned
	Largest int64 // free in one piece
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("host memory is full: %d bytes asked, %d of %d bytes in use, %d free in one piece", e.Asked, e.Live, e.Arena, e.Largest)
}
