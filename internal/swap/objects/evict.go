package objects

import (
	"errors"
	"fmt"
	"math"

	"gm/internal/swap/engine"
)

// batch is how many bytes leave the card at a time for others than this process, so that it can go on meanwhile.
const batch = 256 << 20

// evict has blocks of need bytes leave the card, as far as there are any that nobody uses, and keeps their memory. An error says why others
// cannot leave.
func (s *Store) evict(need int64) (moved int64, err error) {
	var chosen []*block
	for bytes := int64(0); bytes < need; {
		b := s.evictable.first(need - bytes)
		if b == nil {
			break
		}
		if err = s.copyOut(b); err != nil {
			break
		}
		s.evictable.remove(b)
		b.busy = true // its copy on the host is not given up for another
		chosen = append(chosen, b)
		bytes += b.size
	}
	if len(chosen) == 0 {
		return 0, err
	}
	waited := s.dev.StreamSynchronize(s.leaving)
	for _, b := range chosen {
		b.busy = false
		failed := waited
		if waited == nil {
			failed = s.depart(b)
		}
		if failed != nil {
			s.evictable.add(b)
			err = errors.Join(err, failed, s.dirty(b))
			continue
		}
		moved += b.size
	}
	return moved, err
}

// copyOut copies a block to the host, unless that has its contents, in the store's stream, behind the work on it.
func (s *Store) copyOut(b *block) error {
	for _, u := range b.done {
		if err := s.dev.Follow(s.leaving, u.passed); err != nil {
			return err
		}
	}
	if b.ticket != 0 {
		s.stats.Clean++
		return nil
	}
	for {
		ticket, err := s.copyTo(b)
		if err == nil {
			b.ticket = ticket
			return s.engine.Left(ticket, s.leaving)
		}
		if full := (*engine.FullError)(nil); !errors.As(err, &full) {
			return err
		}
		if made, failed := s.makeHostRoom(b.size); !made {
			return errors.Join(err, failed)
		}
	}
}

// copyTo queues a copy to the host, within what the server allows of it.
func (s *Store) copyTo(b *block) (engine.Ticket, error) {
	if x := s.engine.Stats(); x.Live+b.size > s.hostMost {
		return 0, &engine.FullError{Asked: b.size, Live: x.Live, Arena: s.hostMost}
	}
	return s.engine.Out(b.at, b.size, s.leaving)
}

// depart takes the memory of a block whose contents are on the host.
func (s *Store) depart(b *block) error {
	if err := s.strip(b); err != nil {
		return err
	}
	s.stats.Evictions++
	s.stats.EvictedBytes += b.size
	b.place = onHost
	s.stats.Host += b.size
	s.onHost.add(b)
	if b.next != Unknown {
		s.soon.add(b)
	}
	for _, id := range b.members {
		if id != 0 && s.options.Evicted != nil {
			s.gone = append(s.gone, id)
		}
	}
	return s.rested(b)
}

// strip unmaps a block, whose work has ended, and keeps its memory.
func (s *Store) strip(b *block) error {
	if err := s.dev.Unmap(b.at, b.size); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", b.size, err)
	}
	s.keep(b.pieces, b.size)
	b.pieces = nil
	return nil
}

// makeHostRoom gives up what the host has of blocks that are on the card, or else moves a block from the host to the file. It says whether
// there was one.
func (s *Store) makeHostRoom(need int64) (bool, error) {
	for len(s.copies) > 0 {
		b := s.copies[0]
		s.copies = s.copies[1:]
		b.queued = false
		if b.place == card && b.ticket != 0 && !b.busy {
			return true, s.dirty(b)
		}
	}
	b := s.onHost.first(need)
	if s.file == nil || b == nil {
		return false, nil
	}
	contents, err := s.engine.Bytes(b.ticket)
	if err != nil {
		return false, err
	}
	if b.hole, err = s.file.write(contents); err != nil {
		return false, err
	}
	s.onHost.remove(b)
	b.place = inFile
	s.stats.Host -= b.size
	s.stats.File += b.size
	s.stats.Spilled += b.size
	return true, s.dirty(b)
}

// giveUp gives amount bytes of the card to others, all that can be if it is 0, while at most so many bytes of the host are pinned.
func (s *Store) giveUp(amount, pinned int64) (given int64, err error) {
	if amount == 0 {
		amount = math.MaxInt64
	}
	for given < amount && err == nil {
		var n int64
		n, err = s.giveSome(min(amount-given, batch), pinned)
		if given += n; n == 0 {
			break
		}
	}
	return given, err
}

// giveSome gives up at most some more than amount bytes.
func (s *Store) giveSome(amount, pinned int64) (given int64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	s.hostMost = min(s.options.Host, pinned)
	s.hold()
	given, err = s.release(amount)
	for given < amount && err == nil {
		var more bool
		if more, err = s.coolOne(); err == nil && !more {
			var moved int64
			moved, err = s.evict(amount - given)
			more = moved > 0
		}
		n, failed := s.release(amount - given)
		given += n
		if err = errors.Join(err, failed); !more {
			break
		}
	}
	if given > 0 { // what else could not go is found out by the next order
		err = nil
	}
	return given, err
}
