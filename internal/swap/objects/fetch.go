package objects

import (
	"errors"
	"time"

	"gm/internal/swap/engine"
)

// calm is for how long nothing is fetched ahead after memory was given to others, who are yet to take it.
const calm = time.Second

// bring fetches a block that is away. Its contents come behind, and begin waits for them. If it is to be gentle, no block leaves for it.
func (s *Store) bring(b *block, gentle bool) error {
	b.busy = true
	s.forget(b)
	err := s.fetch(b, gentle)
	if err != nil {
		switch b.place {
		case onHost:
			s.onHost.add(b)
		case onPeer:
			b.berth.on.held.add(b)
		}
		if b.next != Unknown {
			s.soon.add(b)
		}
	}
	b.busy = false
	s.settled.Broadcast()
	return err
}

func (s *Store) fetch(b *block, gentle bool) error {
	pieces, err := s.obtain(b.size, gentle)
	if err != nil {
		return err
	}
	if err := s.mapIn(b, pieces); err != nil {
		return err
	}
	if b.place == onPeer {
		err = s.fromPeer(b)
	} else if err = s.restore(b); err == nil {
		err = s.copyIn(b)
	}
	if err != nil {
		return errors.Join(err, s.takeBack(b))
	}
	if b.place == onHost {
		s.stats.Host -= b.size
		s.hasCopy(b)
	}
	b.place = card
	s.stats.Fetches++
	s.stats.FetchedBytes += b.size
	return nil
}

// takeBack takes the memory of a block whose contents did not come, or of which that is not known.
func (s *Store) takeBack(b *block) error {
	s.loose = true
	if err := s.settle(); err != nil {
		b.pieces = nil // nobody uses them again
		return err
	}
	s.strip(b)
	return nil
}

// copyIn queues the copy from the host. It is work on the block, which others wait for.
func (s *Store) copyIn(b *block) error {
	if err := s.engine.In(b.ticket, b.at, s.coming); err != nil {
		return err
	}
	if err := s.engine.Ready(b.ticket, s.coming); err != nil {
		return err
	}
	return s.end(b, s.coming)
}

// restore brings a block from the file to the host.
func (s *Store) restore(b *block) error {
	for b.place == inFile {
		if x := s.engine.Stats(); x.Live+b.size > s.hostMost {
			if made, err := s.makeHostRoom(b.size); err != nil { // it has to come all the same
				return err
			} else if made {
				continue
			}
		}
		ticket, err := s.engine.Load(b.size, func(to []byte) error { return s.file.read(to, b.hole) })
		if full := (*engine.FullError)(nil); err != nil && !errors.As(err, &full) {
			return err
		}
		if err != nil {
			if made, failed := s.makeHostRoom(b.size); !made {
				return errors.Join(err, failed)
			}
			continue
		}
		s.stats.File -= b.size
		s.stats.Restored += b.size
		s.stats.Host += b.size
		b.ticket, b.place = ticket, onHost
		return s.file.drop(b.hole, b.size)
	}
	return nil
}

// lookAhead has objects fetched for which there may be room now.
func (s *Store) lookAhead() {
	if len(s.soon.queues[0].blocks) == 0 {
		return
	}
	select {
	case s.ahead <- struct{}{}:
	default:
	}
}

// hold leaves free memory to others for a while.
func (s *Store) hold() { s.quiet = time.Now().Add(calm) }

// fetchAhead fetches objects that are away into memory that nobody uses, those that are needed first, until the store is closed.
func (s *Store) fetchAhead() {
	s.enterThread()
	t := time.NewTicker(calm)
	defer t.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-s.ahead:
		case <-t.C:
		}
		for s.fetchNext() {
		}
		for s.pinNext() {
			time.Sleep(pinPause)
		}
	}
}

const (
	// mostPinned bounds the bytes of the host that are pinned ahead of need.
	mostPinned = 4 << 30
	// pinPause is left to calls of the program between chunks that are pinned, which hold the lock.
	pinPause = 5 * time.Millisecond
)

// pinNext pins one more chunk of the host for blocks that may leave, where room is short, or others may ask for it. It says whether it did.
func (s *Store) pinNext() bool {
	if s.lock() != nil {
		return false
	}
	defer s.unlock()
	x := s.engine.Stats()
	if !s.pressed && s.client == nil || x.Pinned-x.Live >= min(mostPinned, s.evictable.bytes()) || x.Pinned+chunk > s.hostMost {
		return false
	}
	grown, err := s.engine.Grow()
	return grown && err == nil
}

// fetchNext fetches one block ahead. It says whether it did.
func (s *Store) fetchNext() bool {
	if s.lock() != nil {
		return false
	}
	defer s.unlock()
	b := s.soon.first(0)
	if b == nil || !s.roomAhead(b.size) || s.bring(b, true) != nil {
		return false
	}
	s.stats.Ahead++
	s.now++
	b.touched = s.now
	s.mayGo(b)
	return true
}

// roomAhead says whether there is room for bytes that nobody asks for yet.
func (s *Store) roomAhead(bytes int64) bool {
	if time.Now().Before(s.quiet) {
		return false
	}
	more := bytes - s.unusedBytes()
	if s.limit > 0 {
		return s.taken+more <= s.limit
	}
	free, _, err := s.dev.MemInfo()
	return err == nil && free-max(more, 0) >= s.reserve
}
