package objects

import (
	"errors"
	"slices"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/engine"
)

// block is memory that moves as a whole: that of one object, or of small ones in slots. Its addresses are its own for all its life; while it
// is away nothing is mapped there.
type block struct {
	at      cuda.Ptr
	size    int64         // bytes, whole multiples of cuda.Granularity
	pieces  []cuda.Handle // that are mapped; nil while it is away
	members []ID          // of its slots, 0 for a free one
	unit    int64         // bytes of a slot
	free    int           // slots
	lowest  int           // no slot before it is free
	pins    int           // of all members
	busy    bool          // it comes or goes

	place  place
	berth  *berth        // on another GPU, nil if it has none
	ticket engine.Ticket // of its copy on the host, 0 if there is none
	hole   int64         // its place in the file
	done   []use

	next, made, touched int64
	put                 time.Time // when it was last put
	ranks               [rows]int // in the orders, from 1 on; 0: in none
	queued              bool      // in copies
	behind              bool      // it was copied to the host, and has not left
}

// place is where the contents of a block are.
type place int

const (
	card place = iota
	onPeer
	onHost
	inFile
)

// use is the end of the work on a block in a stream.
type use struct {
	stream cuda.Stream
	passed cuda.Event
}

// newBlock returns a block with memory.
func (s *Store) newBlock(size, unit int64) (*block, error) {
	if of := s.warm[size]; len(of) > 0 {
		b := of[len(of)-1]
		s.warm[size] = of[:len(of)-1]
		s.warmBytes -= size
		s.reset(b, unit)
		return b, nil
	}
	pieces, err := s.obtain(size, false)
	if err != nil {
		return nil, err
	}
	at, err := s.memory.AddressReserve(size)
	if err != nil {
		s.keep(pieces, size)
		return nil, err
	}
	b := &block{at: at, size: size}
	if err := s.mapIn(b, pieces); err != nil {
		return nil, errors.Join(err, s.memory.AddressFree(at, size))
	}
	s.reset(b, unit)
	return b, nil
}

func (s *Store) reset(b *block, unit int64) {
	n := int(b.size / unit)
	if b.unit != unit || b.members == nil {
		b.members = make([]ID, n)
	}
	s.now++
	b.unit, b.free, b.lowest, b.next, b.made, b.touched = unit, n, 0, Unknown, s.now, s.now
}

// mapIn gives a block memory, which is kept for others after an error.
func (s *Store) mapIn(b *block, pieces []cuda.Handle) (err error) {
	offset := int64(0)
	for i, n := range sizes(b.size) {
		if err = s.memory.Map(b.at+cuda.Ptr(offset), pieces[i]); err != nil {
			break
		}
		offset += n
	}
	if err == nil {
		if err = s.memory.SetAccess(b.at, b.size); err == nil {
			b.pieces = pieces
			return nil
		}
	}
	if offset > 0 {
		err = errors.Join(err, s.memory.Unmap(b.at, offset))
	}
	s.keep(pieces, b.size)
	return err
}

// begin has a stream wait for the work on a block, and so for its contents to come. That in a stream of the same handle counts: the handle
// may be another stream by now, or in this thread.
func (s *Store) begin(b *block, stream cuda.Stream) error { return s.follow(stream, b) }

// end notes that the work on a block goes as far as a stream holds now.
func (s *Store) end(b *block, stream cuda.Stream) error {
	if capturing, err := s.dev.Capturing(stream); err != nil {
		return err
	} else if capturing {
		return cuda.ErrCapturing
	}
	passed, err := s.dev.EventRecord(stream)
	if err != nil {
		return err
	}
	b.done = slices.DeleteFunc(b.done, func(u use) bool { return s.covered(u, stream) })
	b.done = append(b.done, use{stream, passed})
	return nil
}

// covered says whether work needs no event of its own besides one that was just recorded in a stream, and forgets that event.
func (s *Store) covered(u use, stream cuda.Stream) bool {
	if u.stream != stream {
		return false
	}
	if stream == cuda.PerThreadStream { // another thread's work goes on
		if passed, err := s.dev.EventQuery(u.passed); !passed || err != nil {
			return false
		}
	}
	_ = s.dev.EventDestroy(u.passed) // it is lost where the driver fails to
	return true
}

// rested forgets the work on a block, which has ended.
func (s *Store) rested(b *block) {
	for _, u := range b.done {
		_ = s.dev.EventDestroy(u.passed) // it is lost where the driver fails to
	}
	b.done = b.done[:0]
}

// dirty forgets the copy of a block on the host. If its contents are on their way, they still come.
func (s *Store) dirty(b *block) (err error) {
	if b.ticket == 0 {
		return nil
	}
	err = s.engine.Drop(b.ticket)
	b.ticket = 0
	if b.place == card && b.ranks[toLeave] > 0 {
		s.stay(b)
		s.mayGo(b)
	}
	return err
}

func (s *Store) pin(b *block) {
	if b.pins++; b.pins == 1 {
		s.stay(b)
		b.next = Unknown
	}
}

// mayGo has a block leave the card when others need the room.
func (s *Store) mayGo(b *block) {
	s.evictable.add(b)
	if b.ticket == 0 {
		s.uncopied.add(b)
	}
}

// idle has a block that was fetched for nothing leave again when others need the room.
func (s *Store) idle(b *block) {
	if b.pins == 0 && b.ranks[toLeave] == 0 {
		s.mayGo(b)
	}
}

// stay takes mayGo back.
func (s *Store) stay(b *block) {
	s.evictable.remove(b)
	s.uncopied.remove(b)
	if b.behind {
		b.behind = false
		s.copied -= b.size
	}
}

// unpin takes pins of a block back. An object of it is needed next then.
func (s *Store) unpin(b *block, pins int, next int64) {
	b.next = min(b.next, next)
	if b.pins -= pins; b.pins == 0 && b.free < len(b.members) {
		s.now++
		b.touched, b.put = s.now, time.Now()
		s.mayGo(b)
		s.copyBehind()
	}
}

// leave frees a slot of a block. Without members the block keeps its memory for others of its size, or ends if it is away.
func (s *Store) leave(b *block, slot int) {
	b.members[slot] = 0
	b.free++
	b.lowest = min(b.lowest, slot)
	if b.free < len(b.members) {
		if b.free == 1 {
			s.trays[b.unit] = append(s.trays[b.unit], b)
		}
		return
	}
	if len(b.members) > 1 {
		s.forgetTray(b)
	}
	s.forget(b)
	if b.place != card {
		_ = s.dissolve(b) // nobody has it any longer
		return
	}
	_ = s.dirty(b) // a copy that nobody asks for any longer
	s.warm[b.size] = append(s.warm[b.size], b)
	s.warmBytes += b.size
}

// forget takes a block out of all orders.
func (s *Store) forget(b *block) {
	s.stay(b)
	s.onHost.remove(b)
	s.soon.remove(b)
	if b.berth != nil {
		b.berth.on.held.remove(b)
	}
}

// dissolve gives up a block that nobody uses: its memory is kept for others, its addresses are not.
func (s *Store) dissolve(b *block) error {
	s.forget(b)
	err := s.dirty(b)
	switch b.place {
	case card:
		s.strip(b)
	case onPeer:
		s.stats.Peer -= b.size
		s.leaveBerth(b)
	case onHost:
		s.stats.Host -= b.size
	case inFile:
		s.stats.File -= b.size
		err = errors.Join(err, s.file.drop(b.hole, b.size))
	}
	s.rested(b)
	return errors.Join(err, s.memory.AddressFree(b.at, b.size))
}
