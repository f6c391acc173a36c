package pickle

// roleOf returns the role of a container that is about to be pushed, and hands over the container on top of the
// stack when the new one shows that it is complete.
//
// What is on the stack does not always tell whether the new container will go into the one on top (which APPEND
// does) or stand beside it in the one below the mark (APPENDS). A dict on top is complete, because a key comes
// before a value. A list on top is asked first, by its role; if the handler wants no such container in it, then it
// is complete.
func (d *Decoder) roleOf(k Kind) (Role, error) {
	if d.handler == nil {
		return 0, nil
	}
	n := len(d.stack)
	if n == 0 {
		return d.handler.Role(0, "", 0, k), nil
	}
	if n > d.floor {
		top := d.stack[n-1]
		if o := d.withRole(top); o != nil {
			if top.rawKind() == List {
				if role := d.handler.Role(o.role, "", len(o.items), k); role != 0 {
					return role, nil
				}
			}
			if err := d.settleTop(); err != nil {
				return 0, err
			}
			n = len(d.stack)
		}
	}
	if n > d.floor+1 && !d.valueBelowMark() && d.stack[n-1].rawKind() == Str { // a key, as SETITEM wants it
		if o := d.withRole(d.stack[n-2]); o != nil && d.stack[n-2].rawKind() == Dict {
			return d.handler.Role(o.role, d.Text(d.stack[n-1]), 0, k), nil
		}
	}
	return d.roleBelowMark(k), nil
}

// valueBelowMark reports whether what comes next is a value for the dict below the last mark.
func (d *Decoder) valueBelowMark() bool {
	return d.floor > 0 && d.stack[d.floor-1].rawKind() == Dict && (len(d.stack)-d.floor)%2 != 0
}

// roleBelowMark returns the role of a container that goes into the one below the last mark.
func (d *Decoder) roleBelowMark(k Kind) Role {
	if d.floor == 0 {
		return 0
	}
	parent := d.stack[d.floor-1]
	o := d.withRole(parent)
	switch {
	case o == nil:
		return 0
	case parent.rawKind() == List:
		return d.handler.Role(o.role, "", len(o.items)+len(d.stack)-d.floor, k)
	case d.valueBelowMark():
		return d.handler.Role(o.role, d.Text(d.stack[len(d.stack)-1]), 0, k)
	}
	return 0
}

// withRole returns the object of a container that is yet to be handed over, else nil.
func (d *Decoder) withRole(v Value) *object {
	if !v.isContainer() {
		return nil
	}
	if o := &d.objects[v.payload()]; o.role != 0 {
		return o
	}
	return nil
}

// settleTop hands the container on top of the stack over. Where nothing takes its place, and it is one of the
// elements of a list, it leaves the stack: C++ writes a list of any length under one mark.
func (d *Decoder) settleTop() error {
	n := len(d.stack)
	v, err := d.settle(d.stack[n-1])
	if err != nil {
		return err
	}
	if v == 0 {
		if d.floor > 0 && d.stack[d.floor-1].rawKind() == List {
			d.stack = d.stack[:n-1]
			return nil
		}
		v = makeValue(dead, 0)
	}
	d.stack[n-1] = v
	return nil
}

// settleAll hands over all of group, in place, before it goes into a container of kind k, and returns what is left
// of it: a list loses what was replaced by nothing, in others None stands there.
func (d *Decoder) settleAll(k Kind, group []Value) ([]Value, error) {
	kept := group[:0]
	for _, v := range group {
		v, err := d.settle(v)
		if err != nil {
			return nil, err
		}
		if v == 0 || v.rawKind() == dead {
			if k == List {
				continue
			}
			v = makeValue(None, 0)
		}
		kept = append(kept, v)
	}
	return kept, nil
}

// settle hands v over if it has a role, and returns what takes its place.
func (d *Decoder) settle(v Value) (Value, error) {
	if !v.isContainer() {
		return v, nil
	}
	o := &d.objects[v.payload()]
	switch {
	case o.gone:
		return o.instead, nil
	case o.role == 0:
		return v, nil
	}
	role := o.role
	o.role = 0
	instead, err := d.handler.Complete(role, v)
	if err != nil {
		return 0, &Error{Offset: d.in.start, Err: err}
	}
	if instead == v {
		return v, nil
	}
	return instead, d.release(v, instead)
}

// release forgets the items of v, and v itself when nothing can refer to it any more.
func (d *Decoder) release(v, instead Value) error {
	left := instead
	if left == 0 {
		left = makeValue(dead, 0)
	}
	i := v.payload()
	o := &d.objects[i]
	if slot := uint64(o.slot) - 1; o.slot != 0 && d.memo.get(slot) == v {
		if err := d.remember(slot, left); err != nil {
			return err
		}
	}
	items := o.items[:0]
	if o.shared || cap(items) > keepItems {
		d.budget.used -= int64(cap(items)) * valueSize
		items = nil
	}
	if o.shared {
		*o = object{instead: left, shared: true, gone: true}
		return nil
	}
	*o = object{items: items, slot: d.free}
	d.free = uint32(i) + 1
	return nil
}
