package objects

import (
	"errors"
	"fmt"
	"math"

	"gm/internal/cuda"
)

// ID names an object. It is more than 0, and never given twice.
type ID int64

// Unknown is the next use of an object of which no next use is known.
const Unknown = math.MaxInt64

// Access is what a program does with an object.
type Access int

// A program that has got an object to Read leaves its contents as they are: a copy of them on the host stays valid.
const (
	Write Access = iota
	Read
)

// maxSize bounds an object, in bytes.
const maxSize = 1 << 46

// object is a part of a block: all of it, or a slot of a tray.
type object struct {
	block *block
	slot  int
	size  int64 // bytes, as asked for
	pins  int
}

func (o *object) at() cuda.Ptr { return o.block.at + cuda.Ptr(int64(o.slot)*o.block.unit) }

// NotThereError says that an ID names no object.
type NotThereError struct{ ID ID }

func (e *NotThereError) Error() string { return fmt.Sprintf("%d is no object of this store", e.ID) }

// Create makes an object of size bytes, for work in a stream, and returns where it is, for all its life. Its contents are not defined. It
// stays on the card until it is put.
func (s *Store) Create(size int64, stream cuda.Stream) (ID, cuda.Ptr, error) {
	if size <= 0 || size > maxSize {
		return 0, 0, fmt.Errorf("an object of %d bytes", size)
	}
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.unlock()
	b, slot, err := s.home(size)
	if err == nil {
		if err = errors.Join(s.begin(b, stream), s.dirty(b)); err != nil {
			s.leave(b, slot)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("create an object of %d bytes: %w", size, err)
	}
	s.last++
	b.members[slot] = s.last
	o := &object{block: b, slot: slot, size: size, pins: 1}
	s.objects[s.last] = o
	s.pin(b)
	return s.last, o.at(), nil
}

// find returns an object whose block is not busy.
func (s *Store) find(id ID) (*object, error) {
	for {
		o := s.objects[id]
		switch {
		case s.closed:
			return nil, errClosed
		case o == nil:
			return nil, &NotThereError{id}
		case !o.block.busy:
			return o, nil
		}
		s.settled.Wait()
	}
}

// Get returns where an object is, on the card, for work in a stream from now on. It stays there until it has been put as often as it was
// created and got. If it was away, the stream waits for it to come; this call does not.
func (s *Store) Get(id ID, access Access, stream cuda.Stream) (cuda.Ptr, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	o, err := s.find(id)
	if err != nil {
		return 0, err
	}
	b := o.block
	s.stats.Gets++
	if b.place != card {
		s.stats.Misses++
		if err := s.bring(b, false); err != nil {
			return 0, fmt.Errorf("get an object of %d bytes: %w", o.size, err)
		}
	}
	err = s.begin(b, stream)
	if err == nil && access == Write {
		err = s.dirty(b)
	}
	if err != nil {
		s.idle(b)
		return 0, fmt.Errorf("get an object of %d bytes: %w", o.size, err)
	}
	o.pins++
	s.pin(b)
	return o.at(), nil
}

var errPut = errors.New("it has been put as often as it was created and got")

// Put says that the work on an object is all in a stream by now, and that the program will get it again before it uses it. Of two objects
// the one with the lesser next is needed earlier: it may count steps, microseconds, or what the program likes; Unknown where that is
// not known.
func (s *Store) Put(id ID, next int64, stream cuda.Stream) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	o, err := s.find(id)
	if err == nil && o.pins == 0 {
		err = errPut
	}
	if err == nil {
		err = s.end(o.block, stream)
	}
	if err != nil {
		return fmt.Errorf("put object %d: %w", id, err)
	}
	o.pins--
	s.unpin(o.block, 1, next)
	return nil
}

// Free ends an object, whether it is in use or put, on the card or away. Its memory may be used again behind the work that the stream holds now.
func (s *Store) Free(id ID, stream cuda.Stream) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	o, err := s.find(id)
	if err == nil && o.block.place == card {
		err = s.end(o.block, stream)
	}
	if err != nil {
		return fmt.Errorf("free object %d: %w", id, err)
	}
	delete(s.objects, id)
	s.leave(o.block, o.slot)
	if o.pins > 0 {
		s.unpin(o.block, o.pins, Unknown)
	}
	s.lookAhead()
	return nil
}
