package ring

import (
	"bytes"
	"encoding/binary"
)

// Record is what a process recorded of one call. The meaning of A, B, C and D depends on the kind.
type Record struct {
	Kind       Kind
	TimeNS     int64 // nanoseconds since the Unix epoch
	A, B, C, D uint64
	Caller     uint64 // address of the calling code; 0 if unknown
	Thread     int32
	Device     int32 // ordinal; -1 for none
	Extra      []byte
	Slots      int // that it took of the ring
}

// Kind is the kind of a record.
type Kind uint8

// The kinds of ring.h, each with the meaning of A, B, C and D. "-" is unused.
const (
	Alloc          Kind = iota + 1 // device memory: address, bytes, context
	Managed                        // managed memory: address, bytes, context
	Array                          // an array: handle, bytes, context
	Free                           // any of these, or memory of a pool: address or handle, -, stream
	FreeFailed                     // the thread's last Free failed
	Create                         // physical memory: handle, bytes, 1 if on the host
	Retain                         // one more reference to physical memory: handle, an address where it is mapped
	Release                        // one reference less: handle
	ReleaseFailed                  //
	Map                            // address, bytes, handle, offset
	Unmap                          // address, bytes
	UnmapFailed                    //
	PoolAlloc                      // memory in a pool: address, bytes, stream, pool
	PoolSize                       // device memory that a pool holds: -, bytes, -, pool
	PoolGone                       // -, -, -, pool
	HostAlloc                      // pinned memory: address, bytes
	HostFree                       // address
	HostFreeFailed                 //
	OOM                            // a request that failed: its kind, bytes, -, bytes that were free
	Context                        // a context was made: context, bytes of the device in use since, before (0 unknown), Monotonic before
	Primary                        // a device's primary context was made, as above
	ContextGone                    // a context is gone with its memory: context, 0 for the device's primary one
	Grew                           // a context's own memory grew: -, bytes, context, a Growth
	Device                         // a device is first used: UUID in A and B, bytes; Extra is its name
	Library                        // code first makes a call: from, to, offset in the file; Extra is its path
	Unknown                        // a function was looked up in a version that is not hooked; Extra is its name
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

// Frames returns the return addresses of the stack, innermost first, in the memory of into.
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
