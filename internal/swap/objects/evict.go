package objects

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/engine"
)

// batch is how many bytes leave the card at a time for others than this process, so that it can go on meanwhile.
const batch = 256 << 20

// evict has blocks of need bytes leave the card, as far as there are any that nobody uses, and keeps their memory. An error says why others
// cannot leave.
func (s *Store) evict(need int64) (moved int64, err error) {
	began := time.Now()
	defer func() { s.stats.Evicting += time.Since(began) }()
	var chosen []*block
	for bytes := int64(0); bytes < need; {
		b := s.evictable.first(need - bytes)
		if b == nil {
			break
		}
		err = s.sendOff(b)
		s.stay(b)
		if err != nil {
			s.mayGo(b)
			break
		}
		b.busy = true // its copy on the host is not given up for another
		chosen = append(chosen, b)
		bytes += b.size
	}
	for _, b := range chosen {
		b.busy = false
		if failed := s.await(b); failed != nil {
			s.loose = true
			s.leaveBerth(b)
			err = errors.Join(err, failed, s.dirty(b))
			s.mayGo(b)
			continue
		}
		s.depart(b)
		moved += b.size
	}
	return moved, err
}

// await waits for the work on a block.
func (s *Store) await(b *block) error {
	for _, u := range b.done {
		if err := s.dev.EventSynchronize(u.passed); err != nil {
			return fmt.Errorf("wait for the work on %d bytes: %w", b.size, err)
		}
	}
	return s.settle()
}

// sendOff copies a block to another GPU, or else to the host, unless that has its contents.
func (s *Store) sendOff(b *block) error {
	if b.ticket != 0 && !b.behind {
		s.stats.Clean++
	}
	if b.ticket == 0 && !s.toPeer(b) {
		return s.copyOut(b)
	}
	return nil
}

// follow has a stream wait for the work on a block.
func (s *Store) follow(stream cuda.Stream, b *block) error {
	for _, u := range b.done {
		if err := s.dev.Follow(stream, u.passed); err != nil {
			return err
		}
	}
	return nil
}

// mostBehind bounds the bytes that are copied to the host before they leave.
const mostBehind = 256 << 20

// copyBehind copies blocks to the host, those that will leave first, while room is short and the host has some: those that come will not have
// to wait for that. Where that fails it is for the eviction to say why.
func (s *Store) copyBehind() {
	most := int64(mostBehind)
	if s.limit > 0 {
		most = min(most, s.limit/4)
	}
	for s.pressed && s.copied < most && !s.peerRoom { // to peers it is as fast at once
		b := s.uncopied.first(0)
		if b == nil || s.copyTo(b) != nil {
			return
		}
		s.uncopied.remove(b)
		b.behind = true
		s.copied += b.size
		s.hasCopy(b)
	}
}

// copyOut copies a block to the host, where room is made for it if need be.
func (s *Store) copyOut(b *block) error {
	for {
		err := s.copyTo(b)
		if err == nil {
			return nil
		}
		if full := (*engine.FullError)(nil); !errors.As(err, &full) {
			return err
		}
		if made, failed := s.makeHostRoom(b.size); !made {
			return errors.Join(err, failed)
		}
	}
}

// copyTo copies a block to the host, within what the server allows of it, behind the work on the block. The copy is work on it, too.
func (s *Store) copyTo(b *block) error {
	if x := s.engine.Stats(); x.Live+b.size > s.hostMost {
		return &engine.FullError{Asked: b.size, Live: x.Live, Arena: s.hostMost}
	}
	if err := s.follow(s.leaving, b); err != nil {
		return err
	}
	from := b.at
	if b.berth != nil {
		from = b.berth.at
	}
	ticket, err := s.engine.Out(from, b.size, s.leaving)
	if err != nil {
		full := (*engine.FullError)(nil)
		s.loose = s.loose || !errors.As(err, &full)
		return err
	}
	b.ticket = ticket
	if err = s.engine.Left(ticket, s.leaving); err == nil {
		err = s.end(b, s.leaving)
	}
	if err != nil {
		s.loose = true
		return errors.Join(err, s.dirty(b))
	}
	return nil
}

// hasCopy notes that the host has a copy of a block that is on the card.
func (s *Store) hasCopy(b *block) {
	if !b.queued {
		b.queued = true
		s.copies = append(s.copies, b)
	}
}

// depart takes the memory of a block whose contents are elsewhere.
func (s *Store) depart(b *block) {
	s.strip(b)
	s.stats.Evictions++
	s.stats.EvictedBytes += b.size
	if b.berth != nil {
		b.place = onPeer
		s.stats.Peer += b.size
		b.berth.on.held.add(b)
	} else {
		s.arrive(b)
	}
	if b.next != Unknown {
		s.soon.add(b)
	}
	for _, id := range b.members {
		if id != 0 && s.options.Evicted != nil {
			s.left = append(s.left, id)
		}
	}
	s.rested(b)
}

// arrive notes that the contents of a block are on the host.
func (s *Store) arrive(b *block) {
	b.place = onHost
	s.stats.Host += b.size
	s.onHost.add(b)
}

// strip unmaps a block, whose work has ended, and keeps its memory.
func (s *Store) strip(b *block) {
	_ = s.memory.Unmap(b.at, b.size) // that has no error
	s.keep(b.pieces, b.size)
	b.pieces = nil
}

// settle waits for work that no event stands for.
func (s *Store) settle() error {
	if !s.loose {
		return nil
	}
	if err := s.dev.Synchronize(); err != nil {
		return fmt.Errorf("wait for the device: %w", err)
	}
	s.loose = false
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

// giveUp gives amount bytes of the card, or of a peer, to others, all that can be now if it is 0, while at most so many bytes of the host are
// pinned. It calls went after each batch.
func (s *Store) giveUp(of *peer, amount, pinned int64, went func()) (given int64, err error) {
	if amount == 0 {
		amount = s.evictableBytes(of)
	}
	for given < amount && err == nil {
		var n int64
		if of != nil {
			n, err = s.givePeer(of, min(amount-given, batch), pinned)
		} else {
			n, err = s.giveSome(min(amount-given, batch), pinned)
		}
		if given += n; n == 0 {
			break
		}
		went()
	}
	return given, err
}

// giveAll gives up all that nobody uses, on the card and on peers, for the host.
func (s *Store) giveAll(pinned int64, went func()) (given int64, err error) {
	given, err = s.giveUp(nil, 0, pinned, went)
	for _, p := range s.peers {
		_, failed := s.giveUp(p, 0, pinned, went)
		err = errors.Join(err, failed)
	}
	return given, err
}

// evictableBytes returns the bytes of the card, or of a peer, that nobody uses.
func (s *Store) evictableBytes(of *peer) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of != nil {
		return of.taken
	}
	return s.unusedBytes() + s.evictable.bytes()
}

// unusedBytes returns the bytes of the card that no object has.
func (s *Store) unusedBytes() int64 { return s.spareBytes + s.warmBytes }

// giveSome gives up at most some more than amount bytes.
func (s *Store) giveSome(amount, pinned int64) (given int64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	s.hostMost = min(s.options.Host, pinned)
	s.hold()
	given = s.release(amount)
	for given < amount && err == nil {
		var more bool
		if more, err = s.coolOne(); err == nil && !more {
			var moved int64
			moved, err = s.evict(amount - given)
			more = moved > 0
		}
		if given += s.release(amount - given); !more {
			break
		}
	}
	s.pressed = true // others are likely to ask for more
	s.copyBehind()
	if given > 0 { // what else could not go is found out by the next order
		err = nil
	}
	return given, err
}
