package pickle

import (
	"fmt"
	"io"
)

// Role is what a Handler makes of a container. Zero means that it is kept as part of the result.
type Role uint8

// Handler takes containers out of the stream.
type Handler interface {
	// Role returns the role of a container of kind List, Dict or Tuple that is the value of key in a dict of role
	// parent, or the element numbered index of a list of role parent. It is asked only when parent is not zero,
	// and once, with parent zero, for the outermost container.
	Role(parent Role, key string, index int, kind Kind) Role

	// Complete is given each container that has a role when it is complete, and returns what stands in its place
	// from then on; the zero Value removes it from the list that it is in.
	Complete(role Role, v Value) (Value, error)
}

// Error is what is wrong with a pickle, and where.
type Error struct {
	Offset int64  // of the opcode, in bytes from the start of the pickle
	Reason string // "" when the handler refused a container that ends there
	Err    error  // what the reader or the handler said, or nil
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return fmt.Sprintf("pickle: byte %d: %s", e.Offset, e.Reason)
	case e.Reason == "":
		return fmt.Sprintf("pickle: byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("pickle: byte %d: %s: %v", e.Offset, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// What a decoder holds at most: see the package comment.
const (
	maxMemory = 512 << 20 // bytes of all tables
	maxMemo   = 64 << 20  // entries
	maxText   = 16 << 20  // bytes of a string
)

// Decoder decodes one pickle. It is not safe for concurrent use.
type Decoder struct {
	in      input
	handler Handler
	budget  budget

	stack []Value
	marks []int // heights of the stack at which the open marks stand
	floor int   // the last of them, 0 when there is none

	objects []object
	free    uint32 // 1 plus the first free object, 0 when there is none
	tuples  map[[3]Value]Value

	memo   memo
	texts  texts
	floats []float64
	wide   []integer
}

// NewDecoder returns a decoder of the pickle in r. It reads ahead, past the end of the pickle. The handler may be
// nil.
func NewDecoder(r io.Reader, h Handler) *Decoder {
	return &Decoder{
		in:      input{r: r, buf: make([]byte, bufferSize)},
		handler: h,
		budget:  budget{limit: maxMemory},
		tuples:  make(map[[3]Value]Value),
		texts:   texts{codes: make(map[string]uint32)},
	}
}

// Offset returns the number of bytes decoded so far.
func (d *Decoder) Offset() int64 { return d.in.offset() }

// Decode decodes the pickle and returns its value. All errors are of type *Error.
func (d *Decoder) Decode() (Value, error) {
	for {
		d.in.mark()
		op, err := d.in.byte()
		if err != nil {
			return 0, d.cut(err)
		}
		if op == opStop {
			return d.stop()
		}
		if err := d.step(op); err != nil {
			return 0, err
		}
	}
}

// stop ends the program: what is on top of the stack is its value.
func (d *Decoder) stop() (Value, error) {
	n := len(d.stack)
	if n <= d.floor {
		return 0, d.fail("the pickle ends with nothing on its stack")
	}
	return d.settle(d.stack[n-1])
}

func (d *Decoder) fail(format string, args ...any) error {
	return &Error{Offset: d.in.start, Reason: fmt.Sprintf(format, args...)}
}

// cut wraps an error of the reader.
func (d *Decoder) cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &Error{Offset: d.in.offset(), Reason: "the pickle is cut off", Err: io.ErrUnexpectedEOF}
	}
	return &Error{Offset: d.in.offset(), Reason: "read", Err: err}
}
