package pickle

// object is a list, dict or tuple. A dict's keys and values stand in turn.
type object struct {
	items   []Value
	instead Value  // once gone: what the handler put in its place
	slot    uint32 // its last memo entry plus 1, or 0; of a free one, 1 plus the next free one, or 0
	role    Role   // as long as it has not been handed over
	shared  bool   // something besides one place and one memo entry may refer to it
	gone    bool   // handed over
}

// keepItems is the largest list of items that an object keeps for reuse.
const keepItems = 64

func (d *Decoder) push(v Value) error {
	if len(d.stack) == cap(d.stack) {
		var err error
		if d.stack, err = room(d, d.stack, 1); err != nil {
			return err
		}
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *Decoder) openMark() (err error) {
	d.floor = len(d.stack)
	d.marks, err = add(d, d.marks, d.floor)
	return err
}

// closeMark takes the last mark away and returns the values above it, which still lie behind the end of the stack.
func (d *Decoder) closeMark() ([]Value, error) {
	if len(d.marks) == 0 {
		return nil, d.fail("no mark on the stack")
	}
	group := d.stack[d.floor:]
	d.stack = d.stack[:d.floor]
	d.marks = d.marks[:len(d.marks)-1]
	d.floor = 0
	if n := len(d.marks); n > 0 {
		d.floor = d.marks[n-1]
	}
	return group, nil
}

// pop takes n values off the stack, which must lie above the last mark.
func (d *Decoder) pop(n int) ([]Value, error) {
	if len(d.stack)-d.floor < n {
		return nil, d.fail("the stack has too few values")
	}
	group := d.stack[len(d.stack)-n:]
	d.stack = d.stack[:len(d.stack)-n]
	return group, nil
}

// top returns the container of kind k that is on top of the stack, above the last mark.
func (d *Decoder) top(k Kind) (Value, error) {
	n := len(d.stack)
	if n <= d.floor {
		return 0, d.fail("the stack has too few values")
	}
	v := d.stack[n-1]
	if v.rawKind() != k {
		return 0, d.fail("%v where %v is needed", v.Kind(), k)
	}
	if d.objects[v.payload()].gone {
		return 0, d.fail("%v is changed after its end", k)
	}
	return v, nil
}

// begin pushes a new container with the given items.
func (d *Decoder) begin(k Kind, items []Value) error {
	if k == Dict && len(items)%2 != 0 {
		return d.fail("a key without a value")
	}
	if len(items) > 0 {
		var err error
		if items, err = d.settleAll(k, items); err != nil {
			return err
		}
	}
	role, err := d.roleOf(k)
	if err != nil {
		return err
	}
	i, err := d.newObject()
	if err != nil {
		return err
	}
	d.objects[i].role = role
	if err := d.add(i, items); err != nil {
		return err
	}
	return d.push(makeValue(k, uint64(i)))
}

func (d *Decoder) newObject() (uint32, error) {
	if d.free > 0 {
		i := d.free - 1
		o := &d.objects[i]
		d.free, o.slot = o.slot, 0
		return i, nil
	}
	var err error
	d.objects, err = add(d, d.objects, object{})
	return uint32(len(d.objects) - 1), err
}

func (d *Decoder) add(object uint32, items []Value) (err error) {
	o := &d.objects[object]
	o.items, err = add(d, o.items, items...)
	return err
}

// extend adds the values of group to the container of kind k on top of the stack.
func (d *Decoder) extend(k Kind, group []Value) error {
	v, err := d.top(k)
	if err != nil {
		return err
	}
	if k == Dict && len(group)%2 != 0 {
		return d.fail("a key without a value")
	}
	if group, err = d.settleAll(k, group); err != nil {
		return err
	}
	if d.objects[v.payload()].gone {
		return d.fail("a container that holds itself")
	}
	return d.add(uint32(v.payload()), group)
}

// tuple replaces group by a tuple. Small tuples of plain values are made once: an event's pool is such a pair, and
// there is one in each event.
func (d *Decoder) tuple(group []Value) error {
	var key [3]Value
	plain := len(group) <= len(key)
	for i := 0; plain && i < len(group); i++ {
		key[i] = group[i]
		plain = !group[i].isContainer()
	}
	if !plain {
		return d.begin(Tuple, group)
	}
	if v, ok := d.tuples[key]; ok {
		return d.push(v)
	}
	if err := d.charge(tupleCost); err != nil {
		return err
	}
	i, err := d.newObject()
	if err != nil {
		return err
	}
	if err := d.add(i, group); err != nil {
		return err
	}
	v := makeValue(Tuple, uint64(i))
	d.objects[i].shared = true
	d.tuples[key] = v
	return d.push(v)
}
