package replay

import (
	"context"
	"errors"
	"fmt"

	"gm/internal/blocks"
)

// Hands perform the steps of a program on an allocator and a device of their own. Tensors are numbered as in the program.
type Hands interface {
	// Begin is called before each step.
	Begin(step int)
	// Alloc requests the memory of a tensor.
	Alloc(tensor int32) error
	// Free frees a tensor that no other stream uses.
	Free(tensor int32) error
	// Request frees a tensor that other streams use until its Complete.
	Request(tensor int32) error
	// Complete ends the use of a tensor by the other streams.
	Complete(tensor int32) error
	// Empty releases what the allocator caches.
	Empty() error
	// End is called after each step that was made.
	End(step int) error
}

// Perform makes h perform the first n steps of p, in order. It ends at the first request that cannot be met and returns where that was, nil
// if there is none. When ctx is done it ends within 4,096 steps, with the error of ctx.
func (p *Program) Perform(ctx context.Context, n int, h Hands) (*OOM, error) {
	for i := range n {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.Begin(i)
		var err error
		switch t := p.Tensors[i]; p.Kinds[i] {
		case Alloc:
			err = h.Alloc(t)
		case Free:
			err = h.Free(t)
		case Request:
			err = h.Request(t)
		case Complete:
			err = h.Complete(t)
		default:
			err = h.Empty()
		}
		if err != nil {
			if oom := p.oomAt(i, err); oom != nil {
				return oom, nil
			}
			return nil, fmt.Errorf("row %d: %w", p.Rows[i], err)
		}
		if err := h.End(i); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// OOM is a request that could not be met.
type OOM struct {
	Row       int64 // of the trace
	TimeNS    int64
	Size      int64 // bytes requested
	Allocated int64 // bytes handed out at that time
	Reserved  int64 // bytes taken from the device at that time
}

// oomAt returns the OOM for an error at a step, nil if the error is another.
func (p *Program) oomAt(step int, err error) *OOM {
	oom := NewOOM(err)
	if oom != nil {
		oom.Row, oom.TimeNS = int64(p.Rows[step]), p.TimesNS[step]
	}
	return oom
}

// NewOOM returns the OOM for an error before the first step, as when the arenas of a plan do not fit. It returns nil if the error is
// another.
func NewOOM(err error) *OOM {
	var oom *blocks.OOMError
	if !errors.As(err, &oom) {
		return nil
	}
	return &OOM{Row: -1, Size: oom.Size, Allocated: oom.Allocated, Reserved: oom.Reserved}
}
