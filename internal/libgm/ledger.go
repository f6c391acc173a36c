package main

import "gm/internal/cuda"

// entry is one live request.
type entry struct {
	ptr       cuda.Ptr // 0: empty
	requested int64    // bytes
	taken     int64    // bytes, rounding included
	stream    cuda.Stream
	pool      int32
	flags     uint32
}

// What is special about a live request.
const (
	plain uint32 = 1 << iota // it came from the driver itself, not from the allocator
	lent                     // another stream than its own uses it, too
)

// ledger holds the live requests by address: an open-addressing hash table with linear probing, at most half full, that
// moves entries back on removal. It holds no pointers, so that the garbage collector never looks into it.
type ledger struct {
	entries []entry
	shift   uint // 64 - log2(len(entries))
	n       int
}

const ledgerBits = 14

func newLedger() ledger {
	return ledger{entries: make([]entry, 1<<ledgerBits), shift: 64 - ledgerBits}
}

func (l *ledger) home(p cuda.Ptr) int { return int(uint64(p) * 0x9e3779b97f4a7c15 >> l.shift) }

// find returns the entry of p, nil if there is none. It is valid until the ledger changes.
func (l *ledger) find(p cuda.Ptr) *entry {
	if p == 0 {
		return nil
	}
	mask := len(l.entries) - 1
	for i := l.home(p); ; i = (i + 1) & mask {
		e := &l.entries[i]
		switch e.ptr {
		case p:
			return e
		case 0:
			return nil
		}
	}
}

// put adds an entry, whose address must not be there.
func (l *ledger) put(e *entry) {
	if 2*(l.n+1) > len(l.entries) {
		l.grow()
	}
	mask := len(l.entries) - 1
	i := l.home(e.ptr)
	for l.entries[i].ptr != 0 {
		i = (i + 1) & mask
	}
	l.entries[i] = *e
	l.n++
}

func (l *ledger) grow() {
	old := l.entries
	l.entries = make([]entry, 2*len(old))
	l.shift--
	l.n = 0
	for i := range old {
		if old[i].ptr != 0 {
			l.put(&old[i])
		}
	}
}

// take removes the entry of p and returns it.
func (l *ledger) take(p cuda.Ptr) (entry, bool) {
	mask := len(l.entries) - 1
	i := l.home(p)
	for l.entries[i].ptr != p {
		if l.entries[i].ptr == 0 {
			return entry{}, false
		}
		i = (i + 1) & mask
	}
	taken := l.entries[i]
	for j := i; ; {
		j = (j + 1) & mask
		if l.entries[j].ptr == 0 {
			break
		}
		// The entry at j may fill the hole at i unless its search begins behind the hole.
		if h := l.home(l.entries[j].ptr); (j-h)&mask >= (j-i)&mask {
			l.entries[i] = l.entries[j]
			i = j
		}
	}
	l.entries[i] = entry{}
	l.n--
	return taken, true
}

// each calls f for every live request, in no order.
func (l *ledger) each(f func(e *entry)) {
	for i := range l.entries {
		if l.entries[i].ptr != 0 {
			f(&l.entries[i])
		}
	}
}
