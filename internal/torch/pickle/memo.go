package pickle

const (
	memoPage     = 1 << 14
	memoKindBits = 4
	memoPayload  = 1<<(32-memoKindBits) - 1
)

// memo maps the numbers that a pickle gives to its objects to their values. An entry is a word of four bytes, kind
// and payload as in Value; what does not fit is held in spilled and the entry is its index there.
type memo struct {
	pages   [][]uint32
	used    int // entries that hold a value: the number that MEMOIZE gives next
	spilled []Value
}

func (m *memo) get(i uint64) Value {
	page := i / memoPage
	if page >= uint64(len(m.pages)) || m.pages[page] == nil {
		return 0
	}
	e := m.pages[page][i%memoPage]
	k, payload := Kind(e>>(32-memoKindBits)), uint64(e&memoPayload)
	if k == spill {
		return m.spilled[payload]
	}
	return makeValue(k, payload)
}

// remember makes v the memo entry i.
func (d *Decoder) remember(i uint64, v Value) error {
	slot, err := d.memoSlot(i)
	if err != nil {
		return err
	}
	m := &d.memo
	if *slot == 0 {
		m.used++
	}
	k, payload := v.rawKind(), v.payload()
	if payload > memoPayload {
		if old := *slot; Kind(old>>(32-memoKindBits)) == spill {
			m.spilled[old&memoPayload] = v
			return nil
		}
		if m.spilled, err = add(d, m.spilled, v); err != nil {
			return err
		}
		k, payload = spill, uint64(len(m.spilled)-1)
	}
	*slot = uint32(k)<<(32-memoKindBits) | uint32(payload)
	return nil
}

// memoSlot returns the memo's entry i, making its page when there is none.
func (d *Decoder) memoSlot(i uint64) (*uint32, error) {
	m, page := &d.memo, i/memoPage
	if n := int(page) + 1 - len(m.pages); n > 0 {
		var err error
		if m.pages, err = add(d, m.pages, make([][]uint32, n)...); err != nil {
			return nil, err
		}
	}
	if m.pages[page] == nil {
		if err := d.charge(4 * memoPage); err != nil {
			return nil, err
		}
		m.pages[page] = make([]uint32, memoPage)
	}
	return &m.pages[page][i%memoPage], nil
}

// put numbers the value on top of the stack. A pickler counts objects from 0 or 1, so that an index beyond the
// bytes read so far is none of a pickler's; refusing it bounds the memo by four bytes for each byte of input.
func (d *Decoder) put(i uint64) error {
	n := len(d.stack)
	if n <= d.floor {
		return d.fail("memo entry %d of an empty stack", i)
	}
	if i > uint64(d.in.start) || i >= maxMemo {
		return d.fail("memo entry %d is out of range", i)
	}
	v := d.stack[n-1]
	if v.isContainer() {
		o := &d.objects[v.payload()]
		if o.slot != 0 {
			o.shared = true
		}
		o.slot = uint32(i) + 1
	}
	return d.remember(i, v)
}

// fetch pushes the value numbered i. A container with a role that is just complete is handed over first, so that a
// list may hold it twice in a row.
func (d *Decoder) fetch(i uint64) error {
	v := d.memo.get(i)
	if v.isContainer() {
		if n := len(d.stack); n > d.floor && d.stack[n-1] == v && d.withRole(v) != nil {
			if err := d.settleTop(); err != nil {
				return err
			}
			v = d.memo.get(i)
		}
	}
	if v.isContainer() {
		o := &d.objects[v.payload()]
		o.shared = true
		if o.gone {
			v = o.instead
		}
	}
	switch v.rawKind() {
	case Invalid:
		return d.fail("memo entry %d is not set", i)
	case dead:
		return d.fail("memo entry %d, a record of a stream, is used twice", i)
	}
	if v == Spent {
		return d.fail("memo entry %d, a list of records, is used twice", i)
	}
	return d.push(v)
}
