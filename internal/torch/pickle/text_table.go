package pickle

// texts holds the distinct strings of a pickle.
type texts struct {
	list  []string
	codes map[string]uint32
}

// intern returns the value of kind Str, Bytes or Global for b.
func (d *Decoder) intern(k Kind, b []byte) (Value, error) {
	t := &d.texts
	if code, ok := t.codes[string(b)]; ok {
		return makeValue(k, uint64(code)), nil
	}
	if err := d.charge(textCost + int64(len(b))); err != nil {
		return 0, err
	}
	code := uint32(len(t.list))
	text := string(b)
	t.list = append(t.list, text)
	t.codes[text] = code
	return makeValue(k, uint64(code)), nil
}

// readText reads a string of n bytes.
func (d *Decoder) readText(k Kind, n uint64) error {
	if n > maxText {
		return d.fail("a string of %d bytes; at most %d are read", n, maxText)
	}
	var b []byte
	var err error
	if n <= bufferSize {
		b, err = d.in.take(int(n))
	} else {
		err = d.in.bytes(n, func(part []byte) { b = append(b, part...) })
	}
	if err != nil {
		return d.cut(err)
	}
	v, err := d.intern(k, b)
	if err != nil {
		return err
	}
	return d.push(v)
}
