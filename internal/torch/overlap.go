package torch

import (
	"errors"
	"time"

	"gm/formats/trace"
)

// clockError bounds, without reaching it, by how much the times of one entry differ from snapshot to snapshot, in ns:
// PyTorch calibrates its clock anew for each (ApproximateClockToUnixTimeConverter).
const clockError = int64(10 * time.Millisecond)

// contextLength is how many of the entries before a snapshot's own must agree for it to be taken for the same.
const contextLength = 16

// pieces holds the entries of a snapshot until it is known to be whole.
type pieces struct {
	room    *int           // see spool
	tails   map[int32]tail // of the snapshot before, by device
	devices map[int32]*piece
}

// piece is the history of one device in a snapshot.
type piece struct {
	spool  spool
	before tail
	tail   tail
	recent context

	old     int64 // entries that the snapshot before has too, if found
	found   bool
	closest int64 // ns by which the time of the one at which they meet differs
}

// tail is how the history of a device in a snapshot ends: with the entry that tells of a snapshot, as a rule of this
// one, and what came while it was being taken.
type tail struct {
	count int64 // entries of the history
	first entry
	time  int64 // of the first entry

	marked  bool // there is an entry of a snapshot: the last such is
	marker  record
	context context // what is before it
	after   int64   // entries after it
}

// entry is what of an entry is the same in all snapshots.
type entry struct {
	op   trace.Op
	addr uint64
	size int64
}

// context holds the entries before another one, the last one at n-1.
type context struct {
	entries [contextLength]entry
	n       int64
}

func (p *pieces) add(device int32, r record) error {
	d := p.devices[device]
	if d == nil {
		d = &piece{spool: spool{room: p.room}, before: p.tails[device]}
		p.devices[device] = d
	}
	return d.add(r)
}

func (p *pieces) close() error {
	var errs []error
	for _, d := range p.devices {
		errs = append(errs, d.spool.close())
	}
	return errors.Join(errs...)
}

func (p *piece) add(r record) error {
	t := &p.tail
	e := entry{r.op, r.addr, r.size}
	if t.count == 0 {
		t.first, t.time = e, r.time
	}
	t.count++
	t.after++
	if r.op == trace.OpSnapshot {
		p.meet(&r)
		t.marked, t.marker, t.context, t.after = true, r, p.recent, 0
	}
	p.recent.push(e)
	return p.spool.append(r)
}

// meet looks whether r, which is counted already, is the entry with which the snapshot before ended.
func (p *piece) meet(r *record) {
	b := &p.before
	if !b.marked || r.size != b.marker.size || !p.recent.agrees(&b.context) {
		return
	}
	if d := distance(r.time, b.marker.time); d < clockError && (!p.found || d < p.closest) {
		p.old, p.found, p.closest = p.tail.count+b.after, true, d
	}
}

// overlap returns how many of the first entries the snapshot before has too; false when its end is not found, so
// that there is a gap. Without an entry to find it by, it is found if both begin with the same entry: nothing was
// overwritten in between.
func (p *piece) overlap() (old int64, reaches bool) {
	b := &p.before
	switch {
	case p.found:
		return p.old, true
	case b.count == 0:
		return 0, true
	case !b.marked && p.tail.first == b.first && distance(p.tail.time, b.time) < clockError && p.tail.count >= b.count:
		return b.count, true
	}
	return 0, false
}

func distance(a, b int64) int64 {
	return max(a, b) - min(a, b)
}

func (c *context) push(e entry) {
	c.entries[c.n%contextLength] = e
	c.n++
}

// agrees compares as many of the last entries as both hold.
func (c *context) agrees(other *context) bool {
	for i := int64(1); i <= min(c.n, other.n, contextLength); i++ {
		if c.entries[(c.n-i)%contextLength] != other.entries[(other.n-i)%contextLength] {
			return false
		}
	}
	return true
}
