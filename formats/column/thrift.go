package column

import (
	"encoding/binary"
	"errors"
)

// Types of Thrift's compact protocol.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftI8
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// maxThriftDepth bounds the nesting of skipped values; those of Parquet nest six deep.
const maxThriftDepth = 16

var (
	errThriftShort = errors.New("ends within a value")
	errThriftBad   = errors.New("malformed")
	errThriftLong  = errors.New("too many entries")
)

// thriftReader reads values from data in order. It allocates nothing. After the first error every method returns zero,
// so that callers need to check err only once, at the end of each struct.
type thriftReader struct {
	data []byte
	pos  int
	err  error
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.data)
}

func (r *thriftReader) byte() byte {
	if r.pos >= len(r.data) {
		r.fail(errThriftShort)
		return 0
	}
	r.pos++
	return r.data[r.pos-1]
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data[r.pos:])
	switch {
	case n == 0:
		r.fail(errThriftShort)
		return 0
	case n < 0:
		r.fail(errThriftBad)
		return 0
	}
	r.pos += n
	return v
}

// integer reads an integer of any width.
func (r *thriftReader) integer(typ byte) int64 {
	if typ != thriftI16 && typ != thriftI32 && typ != thriftI64 {
		r.fail(errThriftBad)
		return 0
	}
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// bytes reads a string; the result is part of the data.
func (r *thriftReader) bytes(typ byte) []byte {
	n := r.uvarint()
	if typ != thriftBinary {
		r.fail(errThriftBad)
	}
	if n > uint64(len(r.data)-r.pos) {
		r.fail(errThriftShort)
	}
	if r.err != nil {
		return nil
	}
	r.pos += int(n)
	return r.data[r.pos-int(n) : r.pos]
}

// structure calls visit for each field of a struct; visit must read or skip the value.
func (r *thriftReader) structure(typ byte, visit func(id int16, typ byte)) {
	if typ != thriftStruct {
		r.fail(errThriftBad)
	}
	var id int16
	for r.err == nil {
		head := r.byte()
		typ := head & 0xf
		if r.err != nil || typ == thriftStop {
			return
		}
		if delta := int16(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int16(r.integer(thriftI16))
		}
		if r.err == nil {
			visit(id, typ)
		}
	}
}

// list calls visit for each of at most limit elements.
func (r *thriftReader) list(typ byte, limit int, visit func(typ byte)) {
	if typ != thriftList && typ != thriftSet {
		r.fail(errThriftBad)
		return
	}
	n, elem := r.listHead()
	if n > uint64(limit) {
		r.fail(errThriftLong)
		return
	}
	for ; n > 0 && r.err == nil; n-- {
		visit(elem)
	}
}

func (r *thriftReader) listHead() (n uint64, elem byte) {
	head := r.byte()
	if n = uint64(head >> 4); n == 15 {
		n = r.uvarint()
	}
	return n, head & 0xf
}

// skip skips a value.
func (r *thriftReader) skip(typ byte) { r.skipAt(typ, 0) }

func (r *thriftReader) skipAt(typ byte, depth int) {
	if depth > maxThriftDepth {
		r.fail(errThriftBad)
	}
	if r.err != nil {
		return
	}
	switch typ {
	case thriftTrue, thriftFalse: // a field's value is its type; list elements go through skipElements
	case thriftI8:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		for range 8 {
			r.byte()
		}
	case thriftBinary:
		r.bytes(typ)
	case thriftList, thriftSet:
		n, elem := r.listHead()
		r.skipElements(n, depth, elem)
	case thriftMap:
		if n := r.uvarint(); n > 0 {
			kinds := r.byte()
			r.skipElements(n, depth, kinds>>4, kinds&0xf)
		}
	case thriftStruct:
		r.structure(typ, func(_ int16, typ byte) { r.skipAt(typ, depth+1) })
	default:
		r.fail(errThriftBad)
	}
}

// skipElements skips n groups of one value of each type. Each value has at least one byte, which bounds the loop.
func (r *thriftReader) skipElements(n uint64, depth int, types ...byte) {
	for ; n > 0 && r.err == nil; n-- {
		for _, typ := range types {
			if typ == thriftTrue || typ == thriftFalse {
				r.byte()
			} else {
				r.skipAt(typ, depth+1)
			}
		}
	}
}
