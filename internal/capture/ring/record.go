package ring

import (
	"bytes"
	"encoding/binary"
)

// Record is what a process told of one call. What is in A, B, C and D, the kind says.
type Record struct {
	Kind       Kind
	TimeNS     int64 // nanoseconds since the Unix epoch
	A, B, C, D uint64
	Caller     uint64 // address of the code that asked; 0 unknown
	Thread     int32
	Device     int32 // ordinal; -1 for none
	Extra      []byte
	Slots      int // it took of the ring
}

// Kind says what a record tells.
type Kind uint8

// The kinds of ring.h, with what is in A, B, C and D.
const (
	Alloc          Kind = iota + 1 // device memory: address, bytes, context
	Managed                        // managed memory: address, bytes, context
	Array                          // an array: handle, bytes, context
	Free                           // any of these, or memory of a pool: address or handle, -, stream
	FreeFailed                     // it was not freed
	Create                         // physical memory: handle, bytes, 1 if on the host
	Retain                         // one more reference to it: handle, an address where it is mapped
	Release                        // one less: handle
	ReleaseFailed                  //
	Map                            // address, bytes, handle, offset
	Unmap                          // address, bytes
	UnmapFailed                    //
	PoolAlloc                      // memory in a pool: address, bytes, stream, pool
	PoolSize                       // what a pool holds of the device: -, bytes, -, pool
	PoolGone                       // -, -, -, pool
	HostAlloc                      // pinned memory: address, bytes
	HostFree                       // address
	HostFreeFailed                 //
	OOM                            // a request that failed: its kind, bytes, -, bytes that were free
	Context                        // a context was made: context, bytes of the device in use since, before (0 unknown), Monotonic before
	Primary                        // a device's primary context was made, as above
	ContextGone                    // and is gone with its memory: context, 0 for the device's primary one
	Grew                           // a context's own memory grew: -, bytes, context, a Growth
	Device                         // first sight of a device: UUID in A and B, bytes; Extra is its name
	Library                        // first sight of code: from, to, offset in the file; Extra is its path
	Unknown                        // a version of a function that is not hooked was handed out; Extra is its name
)

// The calls that make a context's own memory grow.
const (
	GrowthCode  = 0 // code was loaded
	GrowthLimit = 1 // a limit was raised, such as the size of stacks
)

// Text returns the extra bytes as text.
func (r *Record) Text() string {
	text, _, _ := bytes.Cut(r.Extra, []byte{0})
	return string(text)
}

// UUID returns the UUID of a Device record.
func (r *Record) UUID() [16]byte {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:], r.A)
	binary.LittleEndian.PutUint64(id[8:], r.B)
	return id
}

// Frames returns the return addresses of the stack, innermost first.
func (r *Record) Frames(into []uint64) []uint64 {
	into = into[:0]
	for i := 0; i+8 <= len(r.Extra); i += 8 {
		frame := binary.LittleEndian.Uint64(r.Extra[i:])
		if frame == 0 {
			break
		}
		into = append(into, frame)
	}
	return into
}
