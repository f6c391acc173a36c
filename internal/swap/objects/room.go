package objects

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gm/internal/cuda"
)

// pieceSize is that of the pieces of physical memory, in bytes: a block consists of as many as it has room for, and one with the rest. So
// memory that one object leaves is of use for others of any size.
const pieceSize = 32 << 20

// sizes returns those of the pieces of a block.
func sizes(bytes int64) (all []int64) {
	for ; bytes > 0; bytes -= pieceSize {
		all = append(all, min(bytes, pieceSize))
	}
	return all
}

// FullError says that an object has no room. Sizes are in bytes.
type FullError struct {
	Asked  int64
	Taken  int64 // of the card by the store
	Pinned int64 // of objects that are in use
	Limit  int64 // of the store, 0 for none
	Why    error // what is on the card could not leave, nil if all of it is in use
}

func (e *FullError) Error() string {
	text := fmt.Sprintf("the card has no room for %d more bytes: the store has %d of it", e.Asked, e.Taken)
	if e.Limit > 0 {
		text = fmt.Sprintf("the store has no room for %d more bytes: it has %d of %d", e.Asked, e.Taken, e.Limit)
	}
	text += fmt.Sprintf(", %d of them in objects that are in use: put some", e.Pinned)
	if e.Why != nil {
		text += "; the others cannot leave: " + e.Why.Error()
	}
	return text
}

// Unwrap makes it a cuda.ErrOutOfMemory.
func (e *FullError) Unwrap() error { return cuda.ErrOutOfMemory }

// obtain returns pieces for a block. If it is to be gentle, no block leaves for them.
func (s *Store) obtain(size int64, gentle bool) (pieces []cuda.Handle, err error) {
	rest := size
	s.pressed = s.pressed && gentle
	for _, n := range sizes(size) {
		h, err := s.piece(n, rest, gentle)
		if err != nil {
			s.keep(pieces, size-rest)
			return nil, err
		}
		pieces = append(pieces, h)
		rest -= n
	}
	return pieces, nil
}

// piece returns a piece of n bytes. After it, rest less n more are wanted.
func (s *Store) piece(n, rest int64, gentle bool) (cuda.Handle, error) {
	for tries := 0; ; tries++ {
		if of := s.spare[n]; len(of) > 0 {
			h := of[len(of)-1]
			s.spare[n] = of[:len(of)-1]
			s.spareBytes -= n
			return h, nil
		}
		limited := s.limit > 0 && s.taken+n > s.limit
		if !limited {
			h, err := s.memory.Create(n)
			if err == nil {
				s.taken += n
				return h, nil
			}
			if !errors.Is(err, cuda.ErrOutOfMemory) {
				return 0, err
			}
		}
		if made, err := s.makeRoom(n, rest, tries, gentle, limited); err != nil {
			return 0, err
		} else if !made {
			return 0, errNoRoom
		}
	}
}

var errNoRoom = errors.New("there is no room without others leaving")

// makeRoom makes room for a piece of n bytes: of what no object has, of objects that nobody uses, or of others on the card.
func (s *Store) makeRoom(n, rest int64, tries int, gentle, limited bool) (bool, error) {
	if s.release(n) > 0 {
		return true, nil
	}
	if stripped, err := s.coolOne(); stripped || err != nil {
		return stripped, err
	}
	if gentle {
		return false, nil
	}
	moved, why := s.evict(rest)
	s.pressed = true
	if moved > 0 {
		return true, nil
	}
	if !limited && s.client != nil {
		given := s.client.room(rest, tries)
		if s.closed {
			return false, errClosed
		}
		if given || s.unusedBytes() > 0 || s.evictable.first(0) != nil && why == nil { // put meanwhile
			return true, nil
		}
	}
	return false, &FullError{Asked: rest, Taken: s.taken, Pinned: s.taken - s.unusedBytes() - s.evictable.bytes(), Limit: s.limit, Why: why}
}

// keep keeps pieces of bytes in sum, from the first one of a block on, for other blocks.
func (s *Store) keep(pieces []cuda.Handle, bytes int64) {
	for i, n := range sizes(bytes) {
		s.spare[n] = append(s.spare[n], pieces[i])
		s.spareBytes += n
	}
}

// release gives spare pieces of need bytes, or some more, back to the card, the large ones first.
func (s *Store) release(need int64) (freed int64) {
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.spare))) {
		for of := s.spare[n]; len(of) > 0 && freed < need; of = s.spare[n] {
			_ = s.memory.Release(of[len(of)-1]) // that has no error
			s.spare[n] = of[:len(of)-1]
			s.spareBytes -= n
			s.taken -= n
			freed += n
		}
	}
	return freed
}

// coolOne takes the memory of a block that no object has. It says whether there was one.
func (s *Store) coolOne() (bool, error) {
	for _, size := range slices.Backward(slices.Sorted(maps.Keys(s.warm))) {
		of := s.warm[size]
		if len(of) == 0 {
			continue
		}
		b := of[0] // whose work has most likely ended
		if err := s.await(b); err != nil {
			return false, err
		}
		s.warm[size] = slices.Delete(of, 0, 1)
		s.warmBytes -= size
		return true, s.dissolve(b)
	}
	return false, nil
}
