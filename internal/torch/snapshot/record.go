package snapshot

import (
	"encoding/binary"
	"io"

	"gm/formats/trace"
)

// record is one event between the two passes.
type record struct {
	op     trace.Op
	time   int64  // ns
	addr   uint64 // of a block, its slot: see history
	size   int64
	stream int64
	stack  int32
	tag    int32
	pool   int32 // -1 when the snapshot does not say
}

// opUnknown is the op of an entry whose action is none that is known.
const opUnknown trace.Op = opBits

// maxRecord is the greatest length of a packed record.
const maxRecord = 1 + 4*binary.MaxVarintLen64 + 3*binary.MaxVarintLen32

// The first byte of a packed record is its op and, for fields that seldom change, whether they differ from those of
// the record before. Time, address and size follow as differences.
const (
	opBits = 0x0f

	newStream = 1 << 4
	newStack  = 1 << 5
	newTag    = 1 << 6
	newPool   = 1 << 7
)

// pack appends r to dst.
func (r *record) pack(dst []byte, prev *record) []byte {
	head := len(dst)
	dst = append(dst, byte(r.op))
	dst = binary.AppendVarint(dst, r.time-prev.time)
	dst = binary.AppendVarint(dst, int64(r.addr-prev.addr))
	dst = binary.AppendVarint(dst, r.size-prev.size)
	if r.stream != prev.stream {
		dst[head] |= newStream
		dst = binary.AppendVarint(dst, r.stream)
	}
	if r.stack != prev.stack {
		dst[head] |= newStack
		dst = binary.AppendVarint(dst, int64(r.stack))
	}
	if r.tag != prev.tag {
		dst[head] |= newTag
		dst = binary.AppendVarint(dst, int64(r.tag))
	}
	if r.pool != prev.pool {
		dst[head] |= newPool
		dst = binary.AppendVarint(dst, int64(r.pool))
	}
	return dst
}

// unpack makes r, which holds the record before, the one at the start of src, and returns the rest of src.
func (r *record) unpack(src []byte) ([]byte, error) {
	head := src[0]
	src = src[1:]
	bad := false
	next := func() int64 {
		v, n := binary.Varint(src)
		if n <= 0 {
			bad = true
			return 0
		}
		src = src[n:]
		return v
	}
	r.op = trace.Op(head & opBits)
	r.time += next()
	r.addr += uint64(next())
	r.size += next()
	if head&newStream != 0 {
		r.stream = next()
	}
	if head&newStack != 0 {
		r.stack = int32(next())
	}
	if head&newTag != 0 {
		r.tag = int32(next())
	}
	if head&newPool != 0 {
		r.pool = int32(next())
	}
	if bad {
		return nil, io.ErrUnexpectedEOF
	}
	return src, nil
}
