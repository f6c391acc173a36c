package pickle

// texts holds the distinct strings of a pickle.
type texts struct {
	list  []string
	codes map[string]uint32
	bytes int
}

// intern returns the value of kind Str, Bytes or Global for b.
func (d *Decoder) intern(k Kind, b []byte) (Value, error) {
	t := &d.texts
	if code, ok := t.codes[string(b)]; ok {
		return makeValue(k, uint64(code)), nil
	}
	if len(t.list) >= d.limits.texts || t.bytes+len(b) > d.limits.textBytes {
		return 0, d.fail("more than %d distinct strings, or %d bytes of them", d.limits.texts, d.limits.textBytes)
	}
	code := uint32(len(t.list))
	text := string(b)
	t.list = append(t.list, text)
	t.codes[text] = code
	t.bytes += len(b)
	return makeValue(k, uint64(code)), nil
}

// readText reads a string of n bytes.
func (d *Decoder) readText(k Kind, n uint64) error {
	if n > uint64(d.limits.text) {
		return d.fail("a string of %d bytes; at most %d are read", n, d.limits.text)
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
