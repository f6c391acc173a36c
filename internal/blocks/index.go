package blocks

import "gm/internal/cuda"

// index finds a block by its address: an open-addressing hash table with linear probing, at most half full, that moves
// entries back on removal and so needs no tombstones.
type index struct {
	slots []slot
	shift uint // 64 - log2(len(slots))
	n     int
}

type slot struct {
	ptr cuda.Ptr // 0: empty
	id  int32
}

func newIndex() index { return newIndexOf(10) }

// newSmallIndex is for where there may be very many.
func newSmallIndex() index { return newIndexOf(4) }

func newIndexOf(bits uint) index { return index{slots: make([]slot, 1<<bits), shift: 64 - bits} }

// home is the slot where the search for p begins (Fibonacci hashing).
func (x *index) home(p cuda.Ptr) int { return int(uint64(p) * 0x9e3779b97f4a7c15 >> x.shift) }

func (x *index) find(p cuda.Ptr) (int32, bool) {
	if p == 0 {
		return none, false
	}
	mask := len(x.slots) - 1
	for i := x.home(p); ; i = (i + 1) & mask {
		switch x.slots[i].ptr {
		case p:
			return x.slots[i].id, true
		case 0:
			return none, false
		}
	}
}

// put adds p, which must not be there.
func (x *index) put(p cuda.Ptr, id int32) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow()
	}
	mask := len(x.slots) - 1
	i := x.home(p)
	for x.slots[i].ptr != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = slot{p, id}
	x.n++
}

// set is put for a p that may be there, whose block it replaces.
func (x *index) set(p cuda.Ptr, id int32) {
	mask := len(x.slots) - 1
	for i := x.home(p); x.slots[i].ptr != 0; i = (i + 1) & mask {
		if x.slots[i].ptr == p {
			x.slots[i].id = id
			return
		}
	}
	x.put(p, id)
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	x.shift--
	x.n = 0
	for _, s := range old {
		if s.ptr != 0 {
			x.put(s.ptr, s.id)
		}
	}
}

// take removes p and returns its block.
func (x *index) take(p cuda.Ptr) (int32, bool) {
	if p == 0 {
		return none, false
	}
	mask := len(x.slots) - 1
	i := x.home(p)
	for x.slots[i].ptr != p {
		if x.slots[i].ptr == 0 {
			return none, false
		}
		i = (i + 1) & mask
	}
	id := x.slots[i].id
	for j := i; ; {
		j = (j + 1) & mask
		if x.slots[j].ptr == 0 {
			break
		}
		// The entry at j may fill the hole at i unless its search begins behind the hole.
		if h := x.home(x.slots[j].ptr); (j-h)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = slot{}
	x.n--
	return id, true
}
