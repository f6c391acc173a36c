package pickle

// Opcodes, as in Lib/pickletools.py of CPython.
const (
	opMark           = '('
	opStop           = '.'
	opPop            = '0'
	opPopMark        = '1'
	opDup            = '2'
	opFloat          = 'F'
	opInt            = 'I'
	opBinInt         = 'J'
	opBinInt1        = 'K'
	opLong           = 'L'
	opBinInt2        = 'M'
	opNone           = 'N'
	opPersID         = 'P'
	opBinPersID      = 'Q'
	opReduce         = 'R'
	opString         = 'S'
	opBinString      = 'T'
	opShortBinString = 'U'
	opUnicode        = 'V'
	opBinUnicode     = 'X'
	opAppend         = 'a'
	opBuild          = 'b'
	opGlobal         = 'c'
	opDict           = 'd'
	opEmptyDict      = '}'
	opAppends        = 'e'
	opGet            = 'g'
	opBinGet         = 'h'
	opInst           = 'i'
	opLongBinGet     = 'j'
	opList           = 'l'
	opEmptyList      = ']'
	opObj            = 'o'
	opPut            = 'p'
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opSetItem        = 's'
	opTuple          = 't'
	opEmptyTuple     = ')'
	opSetItems       = 'u'
	opBinFloat       = 'G'

	// Protocol 2.
	opProto    = 0x80
	opNewObj   = 0x81
	opExt1     = 0x82
	opExt2     = 0x83
	opExt4     = 0x84
	opTuple1   = 0x85
	opTuple2   = 0x86
	opTuple3   = 0x87
	opNewTrue  = 0x88
	opNewFalse = 0x89
	opLong1    = 0x8a
	opLong4    = 0x8b

	// Protocol 3.
	opBinBytes      = 'B'
	opShortBinBytes = 'C'

	// Protocol 4.
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95

	// Protocol 5.
	opByteArray8     = 0x96
	opNextBuffer     = 0x97
	opReadonlyBuffer = 0x98
)

const maxProtocol = 5

// step executes one opcode but STOP. The opcodes of a snapshot's records come first; each group that knows the
// opcode not passes it on to the next.
func (d *Decoder) step(op byte) error {
	switch op {
	case opBinGet:
		return d.withArg(1, d.fetch)
	case opLongBinGet:
		return d.withArg(4, d.fetch)
	case opMemoize:
		return d.put(uint64(d.memo.used))
	case opBinPut:
		return d.withArg(1, d.put)
	case opLongBinPut:
		return d.withArg(4, d.put)
	case opMark:
		return d.openMark()
	case opEmptyDict:
		return d.begin(Dict, nil)
	case opEmptyList, opEmptySet:
		return d.begin(List, nil)
	case opSetItems:
		return d.closeInto(Dict)
	case opAppends, opAddItems:
		return d.closeInto(List)
	case opSetItem:
		return d.popInto(Dict, 2)
	case opAppend:
		return d.popInto(List, 1)
	}
	return d.stepScalar(op)
}

// withArg reads an unsigned argument of n bytes and passes it on.
func (d *Decoder) withArg(n int, f func(uint64) error) error {
	arg, err := d.arg(n)
	if err != nil {
		return err
	}
	return f(arg)
}

func (d *Decoder) arg(n int) (uint64, error) {
	b, err := d.in.take(n)
	if err != nil {
		return 0, d.cut(err)
	}
	var arg uint64
	for i := n - 1; i >= 0; i-- {
		arg = arg<<8 | uint64(b[i])
	}
	return arg, nil
}

func (d *Decoder) closeInto(k Kind) error {
	group, err := d.closeMark()
	if err != nil {
		return err
	}
	return d.extend(k, group)
}

func (d *Decoder) popInto(k Kind, n int) error {
	group, err := d.pop(n)
	if err != nil {
		return err
	}
	return d.extend(k, group)
}

// stepScalar executes the opcodes that push numbers and strings.
func (d *Decoder) stepScalar(op byte) error {
	switch op {
	case opBinInt1:
		return d.withArg(1, func(n uint64) error { return d.pushInt(int64(n)) })
	case opBinInt2:
		return d.withArg(2, func(n uint64) error { return d.pushInt(int64(n)) })
	case opBinInt:
		return d.withArg(4, func(n uint64) error { return d.pushInt(int64(int32(n))) })
	case opLong1:
		return d.withArg(1, d.pushLong)
	case opLong4:
		return d.withArg(4, d.pushLong)
	case opNone:
		return d.push(makeValue(None, 0))
	case opNewTrue:
		return d.push(makeValue(Bool, 1))
	case opNewFalse:
		return d.push(makeValue(Bool, 0))
	case opBinFloat:
		return d.pushBinFloat()
	case opShortBinUnicode, opShortBinString:
		return d.textOf(Str, 1)
	case opBinUnicode, opBinString:
		return d.textOf(Str, 4)
	case opBinUnicode8:
		return d.textOf(Str, 8)
	case opShortBinBytes:
		return d.textOf(Bytes, 1)
	case opBinBytes:
		return d.textOf(Bytes, 4)
	case opBinBytes8, opByteArray8:
		return d.textOf(Bytes, 8)
	}
	return d.stepStack(op)
}

func (d *Decoder) textOf(k Kind, size int) error {
	n, err := d.arg(size)
	if err != nil {
		return err
	}
	return d.readText(k, n)
}

// stepStack executes tuples, frames and what moves values about.
func (d *Decoder) stepStack(op byte) error {
	switch op {
	case opProto:
		return d.withArg(1, d.checkProtocol)
	case opFrame:
		_, err := d.arg(8)
		return err
	case opEmptyTuple:
		return d.tuple(nil)
	case opTuple1, opTuple2, opTuple3:
		group, err := d.pop(int(op-opTuple1) + 1)
		if err != nil {
			return err
		}
		return d.tuple(group)
	case opTuple, opList, opDict, opFrozenSet:
		return d.closeAs(op)
	case opPop:
		return d.drop()
	case opPopMark:
		_, err := d.closeMark()
		return err
	case opDup:
		return d.dup()
	}
	return d.stepLine(op)
}

func (d *Decoder) checkProtocol(version uint64) error {
	if version > maxProtocol {
		return d.fail("protocol %d; at most %d is known", version, maxProtocol)
	}
	return nil
}

// closeAs makes a container of what lies above the mark.
func (d *Decoder) closeAs(op byte) error {
	group, err := d.closeMark()
	if err != nil {
		return err
	}
	switch op {
	case opTuple:
		return d.tuple(group)
	case opDict:
		return d.begin(Dict, group)
	}
	return d.begin(List, group)
}

// drop takes a value, or a mark, off the stack.
func (d *Decoder) drop() error {
	if len(d.marks) > 0 && len(d.stack) == d.floor {
		_, err := d.closeMark()
		return err
	}
	_, err := d.pop(1)
	return err
}

func (d *Decoder) dup() error {
	n := len(d.stack)
	if n <= d.floor {
		return d.fail("the stack has too few values")
	}
	v := d.stack[n-1]
	if v.isContainer() {
		d.objects[v.payload()].shared = true
	}
	return d.push(v)
}
