// Package ptrmap is a hash table with device addresses as keys. Allocators look up an address in every request and every free.
package ptrmap

import "gm/internal/cuda"

// Map is an open-addressing hash table with linear probing, at most half full, that moves entries back on removal and so needs no
// tombstones. Address 0 cannot be a key. If V holds no pointers, the garbage collector does not scan the table.
type Map[V any] struct {
	slots []slot[V]
	shift uint // 64 - log2(len(slots))
	n     int
}

type slot[V any] struct {
	key   cuda.Ptr // 0: empty
	value V
}

// New returns a table of 1<<bits slots, which grows when half of them are in use.
func New[V any](bits uint) Map[V] { return Map[V]{slots: make([]slot[V], 1<<bits), shift: 64 - bits} }

// Len returns the number of entries.
func (m *Map[V]) Len() int { return m.n }

// home is the slot at which the search for p begins (Fibonacci hashing).
func (m *Map[V]) home(p cuda.Ptr) int { return int(uint64(p) * 0x9e3779b97f4a7c15 >> m.shift) }

// Get returns the value of p, and whether there is one.
func (m *Map[V]) Get(p cuda.Ptr) (value V, ok bool) {
	if at := m.Find(p); at != nil {
		return *at, true
	}
	return value, false
}

// Find returns a pointer to the value of p, valid until the table changes; nil if there is none.
func (m *Map[V]) Find(p cuda.Ptr) *V {
	if p == 0 {
		return nil
	}
	mask := len(m.slots) - 1
	for i := m.home(p); ; i = (i + 1) & mask {
		switch s := &m.slots[i]; s.key {
		case p:
			return &s.value
		case 0:
			return nil
		}
	}
}

// Put adds p, which must not be in the table.
func (m *Map[V]) Put(p cuda.Ptr, value V) {
	if 2*(m.n+1) > len(m.slots) {
		m.grow()
	}
	mask := len(m.slots) - 1
	i := m.home(p)
	for m.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	m.slots[i] = slot[V]{p, value}
	m.n++
}

// Set is Put for a p that may be in the table, whose value is then replaced.
func (m *Map[V]) Set(p cuda.Ptr, value V) {
	if at := m.Find(p); at != nil {
		*at = value
		return
	}
	m.Put(p, value)
}

func (m *Map[V]) grow() {
	old := m.slots
	m.slots = make([]slot[V], 2*len(old))
	m.shift--
	m.n = 0
	for i := range old {
		if old[i].key != 0 {
			m.Put(old[i].key, old[i].value)
		}
	}
}

// Take removes p and returns its value, and whether there was one.
func (m *Map[V]) Take(p cuda.Ptr) (value V, ok bool) {
	if p == 0 {
		return value, false
	}
	mask := len(m.slots) - 1
	i := m.home(p)
	for m.slots[i].key != p {
		if m.slots[i].key == 0 {
			return value, false
		}
		i = (i + 1) & mask
	}
	value = m.slots[i].value
	for j := i; ; {
		j = (j + 1) & mask
		if m.slots[j].key == 0 {
			break
		}
		// The entry at j may fill the hole at i unless its home is after the hole.
		if h := m.home(m.slots[j].key); (j-h)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i] = slot[V]{}
	m.n--
	return value, true
}

// Each calls f for every entry, in no order. The table must not change meanwhile.
func (m *Map[V]) Each(f func(p cuda.Ptr, value *V)) {
	for i := range m.slots {
		if m.slots[i].key != 0 {
			f(m.slots[i].key, &m.slots[i].value)
		}
	}
}
