package pickle

import "strings"

// stepCall executes what would import, build or call something in Python. Names are kept as inert values; the
// calls are refused, but for those that make an empty dict.
func (d *Decoder) stepCall(op byte) error {
	switch op {
	case opGlobal:
		return d.global()
	case opStackGlobal:
		return d.stackGlobal()
	case opReduce:
		return d.reduce()
	case opNewObj, opNewObjEx, opBuild, opObj, opInst:
		return d.refuse()
	case opPersID, opBinPersID:
		return d.fail("refused: a persistent id")
	case opExt1, opExt2, opExt4:
		return d.fail("refused: an entry of the extension registry")
	case opNextBuffer, opReadonlyBuffer:
		return d.fail("refused: an out-of-band buffer")
	}
	return d.fail("unknown opcode 0x%02x", op)
}

func (d *Decoder) global() error {
	module, err := d.line(maxDigits)
	if err != nil {
		return err
	}
	name := string(module) + "."
	attr, err := d.line(maxDigits)
	if err != nil {
		return err
	}
	v, err := d.intern(Global, []byte(name+string(attr)))
	if err != nil {
		return err
	}
	return d.push(v)
}

func (d *Decoder) stackGlobal() error {
	parts, err := d.pop(2)
	if err != nil {
		return err
	}
	if parts[0].rawKind() != Str || parts[1].rawKind() != Str {
		return d.fail("a global whose name is %v", parts[1].Kind())
	}
	module, attr := d.Text(parts[0]), d.Text(parts[1])
	if n := len(module) + 1 + len(attr); n > 2*maxDigits {
		return d.fail("a global whose name has %d bytes; at most %d are read", n, 2*maxDigits)
	}
	v, err := d.intern(Global, []byte(module+"."+attr))
	if err != nil {
		return err
	}
	return d.push(v)
}

// reduce executes a call. The constructors of dicts are called with no items, or with a factory that they do not
// use; the items follow by SETITEMS.
func (d *Decoder) reduce() error {
	call, err := d.pop(2)
	if err != nil {
		return err
	}
	name := "something without a name"
	if call[0].rawKind() == Global {
		name = d.Text(call[0])
	}
	args := d.Items(call[1])
	switch name {
	case "collections.OrderedDict":
		if len(args) == 0 {
			return d.begin(Dict, nil)
		}
	case "collections.defaultdict":
		if len(args) == 0 || len(args) == 1 && args[0].rawKind() == Global {
			return d.begin(Dict, nil)
		}
	}
	return d.fail("refused: the pickle calls %s", clip(name))
}

// refuse names what the pickle would build: the last global on the stack.
func (d *Decoder) refuse() error {
	for i := len(d.stack) - 1; i >= 0 && i >= len(d.stack)-8; i-- {
		if d.stack[i].rawKind() == Global {
			return d.fail("refused: the pickle builds an object of %s", clip(d.Text(d.stack[i])))
		}
	}
	return d.fail("refused: the pickle builds an object")
}

// clip keeps a name from the input short and on one line.
func clip(name string) string {
	if len(name) > 80 {
		name = name[:80] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, name)
}
