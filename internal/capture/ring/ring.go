// Package ring reads the records of a traced process from its ring: the file that gmtrace's preload library (internal/capture/preload)
// writes from within the process. The library's ring.h documents the layout.
//
// A program may write anywhere in its own memory, and so into its ring, or cut its file short. So nothing in a ring is trusted: whatever it
// contains, reading takes at most one step for each slot, uses no memory beyond one record's, and ends in records or an error.
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
	freed    uint64 // slots before this position are free: the process may write up to slotCount beyond it
	extra    []byte
	clock    clock
	counters Counters // those that the process counts are set by Close
	stuck    stuck
}

// Counters count waits and losses.
type Counters struct {
	Waits    uint64 // times that a thread waited for a full ring
	WaitedNS uint64
	Lost     uint64 // calls not recorded, since the ring was closed or stayed full for five seconds
	Torn     uint64 // slots that were claimed and not written, since the process ended or a thread was stopped
	Damaged  uint64 // slots skipped because the preload library cannot have written their contents
	OddTimes uint64 // records whose time was impossible and was replaced
}

var (
	// ErrDamaged means that the positions in a ring are impossible: the program overwrote them.
	ErrDamaged = errors.New("something wrote over its counters")
	// ErrCut means that the file of a ring was truncated.
	ErrCut = errors.New("its file was cut short")
)

const (
	// maxClaimed bounds the slots claimed beyond those of the ring: the longest message, for as many threads as there can be.
	maxClaimed = 256 << 16
	// patience is how long a slot may stay unfinished in a nearly full ring. Writing it takes microseconds; if its thread has ended, all
	// others would wait for it.
	patience = 2 * time.Second
	// nearlyFull is the number of used slots from which a ring counts as nearly full.
	nearlyFull = slotCount / 4 * 3
)

// stuck is where reading stopped, and since when.
type stuck struct {
	at    uint64
	since time.Time
}

// Position returns the position of the next slot to read.
func (r *Ring) Position() uint64 { return r.next }

// Seek sets the position of the next slot to read, and frees the slots before it.
func (r *Ring) Seek(position uint64) { r.next, r.freed = position, position }

// Pending returns the number of slots that were read and are not free yet.
func (r *Ring) Pending() int { return int(r.next - r.freed) }

// Full reports whether nothing more can be read until slots are freed.
func (r *Ring) Full() bool { return r.next-r.freed > slotCount-maxMessage }

// Free frees the slots that were read, so that the process can reuse them.
func (r *Ring) Free() {
	r.freed = r.next
	_ = r.mapping.safely(func() { r.publish() }) // the next Read returns ErrCut
}

// publish writes the tail if it differs, also after the program overwrote it.
func (r *Ring) publish() {
	if tail := r.mapping.word(offTail); !r.mapping.readOnly && atomic.LoadUint64(tail) != r.freed {
		atomic.StoreUint64(tail, r.freed)
	}
}

// Read calls visit with each complete record, in order. Their slots stay in use until Free. The record and its Extra are valid until
// visit returns. After an error Finish can read the rest, unless the file was truncated.
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

// readWhole reads up to the first unfinished slot.
func (r *Ring) readWhole(visit func(*Record)) {
	for r.next-r.freed < slotCount {
		s := r.slot(r.next)
		switch seq := atomic.LoadUint64(&s.seq); {
		case seq == r.next+1:
			r.visit(s, visit)
		case r.overrun(seq):
			r.counters.Damaged++
			r.next++
		case seq == (r.next+1)|extraFlag: // part of a message whose record was lost
			r.next++
		default:
			return
		}
	}
}

// overrun reports whether a slot that is in use was written again, as after the program overwrote the tail.
func (r *Ring) overrun(seq uint64) bool {
	position := seq&^uint64(extraFlag) - 1
	return position > r.next && position-r.next <= maxClaimed && (position-r.next)%slotCount == 0
}

// unstick skips slots that a thread claimed and never finished, if the ring is nearly full and the process would wait for them.
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

// whole reports whether the slot at a position holds a finished record or extra slot of that position.
func (r *Ring) whole(position uint64) bool {
	return atomic.LoadUint64(&r.slot(position).seq)&^uint64(extraFlag) == position+1
}

// Finish reads the rest of the ring of a process that writes no more, and skips unfinished slots. It looks at every slot and does not
// depend on the positions in the header.
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
		givenUp := atomic.LoadUint64(r.mapping.word(offGivenUp)) // claimed by messages that were given up and are counted in Lost
		r.counters.Torn += unfinished - min(unfinished, givenUp)
		if head := r.freed + claimed; r.next > head { // nothing was read beyond what was claimed
			r.next = max(head, r.freed)
		}
	})
}

// visit reads a finished record with its extra slots.
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

// gather copies the n extra slots after the next one into r.extra. It returns false if they do not belong to the record, before which they
// were written.
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

// believed returns a counter, or 0 if it is too large to be real.
func believed(n uint64) uint64 {
	if n > 1<<62 {
		return 0
	}
	return n
}

// Shut closes the ring for the process, which then stops writing. What it wrote can still be read.
func (r *Ring) Shut() {
	if r.mapping.memory == nil || r.mapping.readOnly {
		return
	}
	_ = r.mapping.safely(func() { atomic.StoreUint32(r.mapping.half(offClosed), 1) })
}

// Close shuts the ring and unmaps it. Header and Counters stay valid.
func (r *Ring) Close() error {
	r.Shut()
	r.counters = r.Counters()
	return r.mapping.close()
}
