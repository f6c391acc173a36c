package engine

// slotAlign is what the sizes of slots are multiples of, in bytes: as of device memory, so that a copy begins and ends at whole lines of
// the caches and buses on both sides.
const slotAlign = 512

// none is no slot.
const none int32 = -1

// arena hands out slots of one range of bytes, from 0 on. A released slot is joined with its free neighbours at once. A request
// gets the smallest free slot that holds it, and what is behind all others last: the same requests get the same places in every step of a
// training loop, and what was never used stays so for as long as it can.
type arena struct {
	slots  []slot
	unused []int32 // rows of slots that hold none
	free   []row   // the free slots but the last of the range, by size and then by place
	size   int64
	last   int32 // at the end of the range; none if the range is empty
}

// slot is a part of the range, free or not.
type slot struct {
	at, size   int64
	reader     int64 // of the copies in that may still read a free slot the last one, counted from 1; 0 if there is none
	prev, next int32 // by place
	used       bool
}

// row is a free slot.
type row struct {
	size, at int64
	id       int32
}

// newArena makes an arena of size bytes, a multiple of slotAlign and more than 0.
func newArena(size int64) arena {
	return arena{slots: []slot{{size: size, prev: none, next: none}}, size: size}
}

// alloc takes a slot of at least n bytes, n more than 0. It returns none if there is none.
func (a *arena) alloc(n int64) int32 {
	n = (n + slotAlign - 1) / slotAlign * slotAlign
	if n <= 0 { // overflow
		return none
	}
	id := a.fit(n)
	if id == none {
		return none
	}
	s := &a.slots[id]
	s.used = true
	if rest := s.size - n; rest > 0 {
		s.size = n
		a.insertBehind(id, rest)
	}
	return id
}

// fit takes the free slot for n bytes out of the free ones.
func (a *arena) fit(n int64) int32 {
	if i := a.seek(n, 0); i < len(a.free) {
		id := a.free[i].id
		a.removeRow(i)
		return id
	}
	if a.last != none && !a.slots[a.last].used && a.slots[a.last].size >= n {
		return a.last
	}
	return none
}

// insertBehind makes a free slot of the bytes that were cut off a slot.
func (a *arena) insertBehind(id int32, size int64) {
	rest := a.newSlot()
	s := &a.slots[id]
	a.slots[rest] = slot{at: s.at + s.size, size: size, reader: s.reader, prev: id, next: s.next}
	if s.next == none {
		a.last = rest
	} else {
		a.slots[s.next].prev = rest
	}
	s.next = rest
	a.insertRow(rest)
}

func (a *arena) newSlot() int32 {
	if n := len(a.unused); n > 0 {
		id := a.unused[n-1]
		a.unused = a.unused[:n-1]
		return id
	}
	a.slots = append(a.slots, slot{})
	return int32(len(a.slots) - 1)
}

// give takes a slot back. The last copy in that may still read it is reader, or the one that it was handed out with.
func (a *arena) give(id int32, reader int64) {
	s := &a.slots[id]
	s.used = false
	s.reader = max(s.reader, reader)
	if next := s.next; next != none && !a.slots[next].used {
		a.join(id, next)
	}
	if prev := s.prev; prev != none && !a.slots[prev].used {
		a.join(prev, id)
		id = prev
	}
	a.insertRow(id)
}

// join has a free slot take up the next one, which is free, too.
func (a *arena) join(id, next int32) {
	s, n := &a.slots[id], &a.slots[next]
	for _, free := range [2]int32{id, next} {
		if i := a.seek(a.slots[free].size, a.slots[free].at); i < len(a.free) && a.free[i].id == free {
			a.removeRow(i)
		}
	}
	s.size += n.size
	s.reader = max(s.reader, n.reader)
	s.next = n.next
	if n.next == none {
		a.last = id
	} else {
		a.slots[n.next].prev = id
	}
	a.unused = append(a.unused, next)
}

// shrink ends the range at size, behind which no slot is in use, and before which the last one begins.
func (a *arena) shrink(size int64) {
	a.size = size
	last := &a.slots[a.last]
	last.size = size - last.at
	if last.size > 0 {
		return
	}
	a.unused = append(a.unused, a.last)
	a.last = last.prev // in use, or it were joined with the last
	if a.last != none {
		a.slots[a.last].next = none
	}
}

// largest returns the size of the largest free slot.
func (a *arena) largest() (n int64) {
	if len(a.free) > 0 {
		n = a.free[len(a.free)-1].size
	}
	if a.last != none && !a.slots[a.last].used {
		n = max(n, a.slots[a.last].size)
	}
	return n
}

// seek returns the first row of free that is not before (size, at).
func (a *arena) seek(size, at int64) int {
	low, high := 0, len(a.free)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if r := &a.free[middle]; r.size < size || r.size == size && r.at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// insertRow enters a free slot, unless it is the last.
func (a *arena) insertRow(id int32) {
	if id == a.last {
		return
	}
	s := &a.slots[id]
	i := a.seek(s.size, s.at)
	a.free = append(a.free, row{})
	copy(a.free[i+1:], a.free[i:])
	a.free[i] = row{s.size, s.at, id}
}

func (a *arena) removeRow(i int) {
	copy(a.free[i:], a.free[i+1:])
	a.free = a.free[:len(a.free)-1]
}
