// Package ring reads what a traced process tells of its memory: the file that gmtrace's preload library
// (internal/capture/preload, whose ring.h documents the layout) writes from within the process.
//
// A program may write anywhere in its own memory, and so into its ring, or cut its file short. Nothing in a ring is believed: whatever is in
// it, reading takes at most one step for each slot, no memory beyond a record's, and ends in records or an error.
package ring

import (
	"errors"
	"sync/atomic"
	"time"
)

// Ring is the ring of one process, mapped into this one. It is read by one goroutine.
type Ring struct {
	Header Header

	mapping  mapping
	next     uint64 // position of the next slot to read
	freed    uint64 // position up to which the process may write anew, less the slots of the ring
	extra    []byte
	clock    clock
	counters Counters // those of the process only when it is closed
	stuck    stuck
}

// Counters tell how the ring served the process.
type Counters struct {
	Waits    uint64 // times that a thread waited for the ring to be emptied
	WaitedNS uint64
	Lost     uint64 // calls that were given up, since nobody emptied the ring for five seconds
	Torn     uint64 // calls that never finished writing, since the process ended or a thread was stopped; slots, where stacks are recorded
	Damaged  uint64 // slots that hold what the preload library does not write, and are left out
	OddTimes uint64 // records whose time cannot be, and was replaced
}

var (
	// ErrDamaged means that the counters of a ring are not those of the preload library: something else wrote there.
	ErrDamaged = errors.New("something wrote over its counters")
	// ErrCut means that the file of a ring has become shorter.
	ErrCut = errors.New("its file was cut short")
)

const (
	// maxClaimed is how many slots may be claimed beyond those of the ring: the longest message of each of as many threads as there can be.
	maxClaimed = 256 << 16
	// patience is how long a slot may stay unfinished in a ring that is nearly full. A thread needs microseconds; one that was ended in
	// the midst of a call would stop all others.
	patience = 2 * time.Second
	// nearlyFull is the number of slots, in use, that make a ring nearly full.
	nearlyFull = slotCount / 4 * 3
)

// stuck is where reading stopped, and since when.
type stuck struct {
	at    uint64
	since time.Time
}

// Position returns the position of the next slot to read. Seek sets it, and what was before is free.
func (r *Ring) Position() uint64 { return r.next }

// Seek sets the position of the next slot to read, and frees what is before it.
func (r *Ring) Seek(position uint64) { r.next, r.freed = position, position }

// Pending returns the number of slots that were read and are not free yet.
func (r *Ring) Pending() int { return int(r.next - r.freed) }

// Full tells whether nothing more can be read before slots are freed.
func (r *Ring) Full() bool { return r.next-r.freed > slotCount-maxMessage }

// Free gives the slots that were read back to the process.
func (r *Ring) Free() {
	r.freed = r.next
	_ = r.mapping.safely(func() { r.publish() }) // the next reading says that the file was cut
}

// publish writes the tail, also where something wrote over it.
func (r *Ring) publish() {
	if tail := r.mapping.word(offTail); !r.mapping.readOnly && atomic.LoadUint64(tail) != r.freed {
		atomic.StoreUint64(tail, r.freed)
	}
}

// Read calls visit with each record that is whole, in order. Their slots stay taken until Free. The record and its Extra are valid until
// visit returns. After an error what is left can be read by Finish, unless the file was cut.
func (r *Ring) Read(visit func(*Record)) error {
	if r.mapping.memory == nil {
		return nil
	}
	var damaged bool
	err := r.mapping.safely(func() {
		r.publish()
		r.readWhole(visit)
		head := atomic.LoadUint64(r.mapping.word(offHead))
		damaged = head-r.freed > slotCount+maxClaimed
		if !damaged {
			r.unstick(head)
		}
	})
	if err == nil && damaged {
		err = ErrDamaged
	}
	return err
}

// readWhole reads up to the first slot that is not finished.
func (r *Ring) readWhole(visit func(*Record)) {
	for r.next-r.freed < slotCount {
		s := r.slot(r.next)
		switch seq := atomic.LoadUint64(&s.seq); {
		case seq == r.next+1:
			r.visit(s, visit)
		case r.overrun(seq):
			r.counters.Damaged++
			r.next++
		case seq == (r.next+1)|extraFlag: // of a message whose record is gone
			r.next++
		default:
			return
		}
	}
}

// overrun tells whether a slot that is not free holds what was written later, as by a process whose tail was overwritten.
func (r *Ring) overrun(seq uint64) bool {
	position := seq&^uint64(extraFlag) - 1
	return position > r.next && position-r.next <= maxClaimed && (position-r.next)%slotCount == 0
}

// unstick steps over slots that a thread claimed and never finished, when the process would have to wait for them.
func (r *Ring) unstick(head uint64) {
	now := time.Now()
	if r.stuck.at != r.next || head == r.next {
		r.stuck = stuck{r.next, now}
		return
	}
	if head-r.freed < nearlyFull || now.Sub(r.stuck.since) < patience {
		return
	}
	for end := min(head, r.freed+slotCount); r.next < end && !r.whole(r.next); r.next++ {
		r.counters.Torn++
	}
}

// whole tells whether the slot at a position holds a record or an extra slot of that position.
func (r *Ring) whole(position uint64) bool {
	return atomic.LoadUint64(&r.slot(position).seq)&^uint64(extraFlag) == position+1
}

// Finish reads what is left in the ring of a process that writes no more, stepping over what it left unfinished. It looks at every slot,
// and needs no counter to be right.
func (r *Ring) Finish(visit func(*Record)) error {
	if r.mapping.memory == nil {
		return nil
	}
	return r.mapping.safely(func() {
		claimed := atomic.LoadUint64(r.mapping.word(offHead)) - r.freed
		if claimed > slotCount+maxClaimed {
			claimed = 0
		}
		var unfinished uint64
		for end := r.freed + slotCount; r.next < end; {
			s := r.slot(r.next)
			switch seq := atomic.LoadUint64(&s.seq); {
			case seq == r.next+1:
				r.visit(s, visit)
				continue
			case seq == (r.next+1)|extraFlag:
			case r.overrun(seq):
				r.counters.Damaged++
			case r.next-r.freed < claimed:
				unfinished++
			}
			r.next++
		}
		givenUp := atomic.LoadUint64(r.mapping.word(offGivenUp)) // they wait for no room any more, and count as lost
		r.counters.Torn += unfinished - min(unfinished, givenUp)
		if head := r.freed + claimed; r.next > head { // where nothing was claimed nothing was read
			r.next = max(head, r.freed)
		}
	})
}

// visit reads a record that is whole, with its extra slots.
func (r *Ring) visit(s *slot, visit func(*Record)) {
	n := uint64(s.extra)
	if r.next-r.freed+1+n > slotCount || !r.gather(n) {
		r.counters.Damaged++
		r.next++
		return
	}
	rec := Record{
		Kind: Kind(s.kind), A: s.a, B: s.b, C: s.c, D: s.d, Caller: s.caller, Thread: int32(s.thread), Device: int32(s.device),
		Extra: r.extra, Slots: int(1 + n),
	}
	var ok bool
	if rec.TimeNS, ok = r.clock.wall(s.timeNS); !ok {
		r.counters.OddTimes++
	}
	r.next += 1 + n
	visit(&rec)
}

// gather copies the n slots behind the next one, and tells whether they are what belongs there: they were written before the record.
func (r *Ring) gather(n uint64) bool {
	r.extra = r.extra[:0]
	for i := range n {
		s := r.slot(r.next + 1 + i)
		if atomic.LoadUint64(&s.seq) != (r.next+2+i)|extraFlag {
			return false
		}
		r.extra = append(r.extra, s.bytes()...)
	}
	return true
}

func (r *Ring) slot(position uint64) *slot { return &r.mapping.slots[position%slotCount] }

// Now returns the time on the clock of the records, nanoseconds since the Unix epoch.
func (r *Ring) Now() int64 { return r.clock.now() }

// Counters returns the counters so far.
func (r *Ring) Counters() Counters {
	c := r.counters
	if r.mapping.memory == nil {
		return c
	}
	_ = r.mapping.safely(func() {
		c.Waits = believed(atomic.LoadUint64(r.mapping.word(offWaits)))
		c.WaitedNS = believed(atomic.LoadUint64(r.mapping.word(offWaitedNS)))
		c.Lost = believed(atomic.LoadUint64(r.mapping.word(offLost)))
	})
	return c
}

// believed returns a counter, or 0 if no process can have counted so far.
func believed(n uint64) uint64 {
	if n > 1<<62 {
		return 0
	}
	return n
}

// Shut tells the process to write no more. What is there can still be read.
func (r *Ring) Shut() {
	if r.mapping.memory == nil || r.mapping.readOnly {
		return
	}
	_ = r.mapping.safely(func() { atomic.StoreUint32(r.mapping.half(offClosed), 1) })
}

// Close tells the process to write no more, and unmaps the ring. Nothing is read from it any more; its Header and its Counters remain.
func (r *Ring) Close() error {
	r.Shut()
	r.counters = r.Counters()
	return r.mapping.close()
}
