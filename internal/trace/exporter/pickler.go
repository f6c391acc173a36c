package exporter

import (
	"bufio"
	"encoding/binary"
	"math"
)

// pickler writes a pickle of protocol 4, with opcodes that both Python's pickle and PyTorch's MemoryViz.js read. The writer keeps
// the first error.
type pickler struct {
	out   *bufio.Writer
	memos uint32            // number of memoized values
	texts map[string]uint32 // their memos
	buf   [9]byte
}

// The opcodes (Lib/pickle.py of Python).
const (
	opProto      = 0x80
	opStop       = '.'
	opMark       = '('
	opEmptyDict  = '}'
	opSetItems   = 'u'
	opEmptyList  = ']'
	opAppends    = 'e'
	opTuple2     = 0x86
	opTrue       = 0x88
	opFalse      = 0x89
	opByte       = 'K'
	opShort      = 'M'
	opInt        = 'J'
	opLong       = 0x8a
	opFloat      = 'G'
	opShortText  = 0x8c
	opText       = 'X'
	opMemoize    = 0x94
	opGet        = 'h'
	opLongGet    = 'j'
	proto        = 4
	appendsBatch = 1000 // items per APPENDS, as Python writes them
)

func newPickler(out *bufio.Writer) *pickler {
	out.Write([]byte{opProto, proto})
	return &pickler{out: out, texts: map[string]uint32{}}
}

// dict writes a dict; fill writes its keys and values in turn.
func (p *pickler) dict(fill func()) {
	p.out.Write([]byte{opEmptyDict, opMark})
	fill()
	p.out.WriteByte(opSetItems)
}

// list is a list that is being written.
type list struct {
	*pickler
	batch int // items since the mark
}

// list begins a list. Callers call next before each item, and end after the last.
func (p *pickler) list() *list {
	p.out.WriteByte(opEmptyList)
	return &list{pickler: p}
}

func (l *list) next() {
	if l.batch == appendsBatch {
		l.end()
	}
	if l.batch == 0 {
		l.out.WriteByte(opMark)
	}
	l.batch++
}

func (l *list) end() {
	if l.batch > 0 {
		l.out.WriteByte(opAppends)
	}
	l.batch = 0
}

// memoize gives the last written value a number, with which get writes it again.
func (p *pickler) memoize() uint32 {
	p.out.WriteByte(opMemoize)
	p.memos++
	return p.memos - 1
}

func (p *pickler) get(memo uint32) {
	if memo < 256 {
		p.out.Write([]byte{opGet, byte(memo)})
		return
	}
	p.buf[0] = opLongGet
	binary.LittleEndian.PutUint32(p.buf[1:], memo)
	p.out.Write(p.buf[:5])
}

// text writes a string, in full the first time.
func (p *pickler) text(s string) {
	if memo, known := p.texts[s]; known {
		p.get(memo)
		return
	}
	if len(s) < 256 {
		p.out.Write([]byte{opShortText, byte(len(s))})
	} else {
		p.buf[0] = opText
		binary.LittleEndian.PutUint32(p.buf[1:], uint32(len(s)))
		p.out.Write(p.buf[:5])
	}
	p.out.WriteString(s)
	p.texts[s] = p.memoize()
}

// integer writes an integer.
func (p *pickler) integer(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		p.out.Write([]byte{opByte, byte(n)})
	case n >= 0 && n < 1<<16:
		p.out.Write([]byte{opShort, byte(n), byte(n >> 8)})
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.buf[0] = opInt
		binary.LittleEndian.PutUint32(p.buf[1:], uint32(n))
		p.out.Write(p.buf[:5])
	default:
		binary.LittleEndian.PutUint64(p.buf[:], uint64(n))
		p.out.Write([]byte{opLong, 8})
		p.out.Write(p.buf[:8])
	}
}

// address writes an unsigned integer of 64 bits.
func (p *pickler) address(n uint64) {
	if n <= math.MaxInt64 {
		p.integer(int64(n))
		return
	}
	binary.LittleEndian.PutUint64(p.buf[:], n)
	p.buf[8] = 0 // keeps the sign positive
	p.out.Write([]byte{opLong, 9})
	p.out.Write(p.buf[:9])
}

func (p *pickler) float(x float64) {
	p.buf[0] = opFloat
	binary.BigEndian.PutUint64(p.buf[1:], math.Float64bits(x))
	p.out.Write(p.buf[:9])
}

func (p *pickler) boolean(b bool) {
	if b {
		p.out.WriteByte(opTrue)
		return
	}
	p.out.WriteByte(opFalse)
}

// Keys with their values, for dicts.

func (p *pickler) textAt(key, value string)           { p.text(key); p.text(value) }
func (p *pickler) integerAt(key string, value int64)  { p.text(key); p.integer(value) }
func (p *pickler) addressAt(key string, value uint64) { p.text(key); p.address(value) }
func (p *pickler) booleanAt(key string, value bool)   { p.text(key); p.boolean(value) }
func (p *pickler) floatAt(key string, value float64)  { p.text(key); p.float(value) }
func (p *pickler) dictAt(key string, fill func())     { p.text(key); p.dict(fill) }
func (p *pickler) listAt(key string) *list            { p.text(key); return p.list() }
func (p *pickler) pairAt(key string, first, second uint64) {
	p.text(key)
	p.address(first)
	p.address(second)
	p.out.WriteByte(opTuple2)
}

// end ends the pickle.
func (p *pickler) end() error {
	return p.out.WriteByte(opStop)
}
