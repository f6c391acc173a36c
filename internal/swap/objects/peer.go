package objects

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/server/wire"
)

// peer is another GPU, to whose memory blocks go before they go to the host: NVLink copies several times as fast as the link to that.
type peer struct {
	*driver.Peer
	bus   [16]byte
	taken int64              // bytes, in berths
	free  map[int64][]*berth // by size
	held  *order             // blocks there
}

// berth is memory of a peer that holds a block.
type berth struct {
	on     *peer
	at     cuda.Ptr
	size   int64
	memory cuda.Handle
	read   cuda.Event // behind the last copy from it, 0 if there was none
}

func (s *Store) openPeers() error {
	switch n := len(s.options.Peers); {
	case n > 0 && s.options.PeerLimit <= 0:
		return errors.New("other GPUs are named, and not how many bytes of them the store may take")
	case n >= wire.MaxCards:
		return fmt.Errorf("%d other GPUs are named: the most are %d", n, wire.MaxCards-1)
	}
	s.peerRoom = len(s.options.Peers) > 0
	for i, ordinal := range s.options.Peers {
		if slices.Contains(s.options.Peers[:i], ordinal) {
			return fmt.Errorf("GPU %d is named twice", ordinal)
		}
		p, err := s.dev.Peer(ordinal)
		if err != nil {
			return err
		}
		bus, err := p.PCIBusID()
		if err != nil {
			return err
		}
		s.peers = append(s.peers, &peer{Peer: p, bus: wire.BusOf(bus), free: map[int64][]*berth{}, held: newOrder(s.options.Policy, toLeave)})
	}
	return nil
}

// onPeers returns the bytes that are taken of peers.
func (s *Store) onPeers() (bytes int64) {
	for _, p := range s.peers {
		bytes += p.taken
	}
	return bytes
}

// takeBerth returns a berth for a block, nil if the peers have no room.
func (s *Store) takeBerth(size int64) *berth {
	b := s.findBerth(size)
	s.peerRoom = b != nil
	return b
}

func (s *Store) findBerth(size int64) *berth {
	for _, p := range s.peers {
		if of := p.free[size]; len(of) > 0 {
			p.free[size] = of[:len(of)-1]
			return of[len(of)-1]
		}
	}
	for _, p := range s.peers {
		for s.onPeers()+size > s.options.PeerLimit && s.dropFree() {
		}
		if s.onPeers()+size > s.options.PeerLimit {
			return nil
		}
		if s.quota > 0 && p.taken+size > s.quota {
			continue
		}
		if b, err := s.newBerth(p, size); err == nil { // else the next one, or the host, has room
			return b
		}
	}
	return nil
}

func (s *Store) newBerth(p *peer, size int64) (*berth, error) {
	h, err := p.Create(size)
	if err != nil {
		return nil, err
	}
	at, err := s.memory.AddressReserve(size)
	if err != nil {
		return nil, errors.Join(err, s.memory.Release(h))
	}
	if err = s.memory.Map(at, h); err == nil {
		if err = s.memory.SetAccess(at, size); err == nil {
			p.taken += size
			return &berth{on: p, at: at, size: size, memory: h}, nil
		}
		err = errors.Join(err, s.memory.Unmap(at, size))
	}
	return nil, errors.Join(err, s.memory.Release(h), s.memory.AddressFree(at, size))
}

// dropFree gives a free berth back to its peer. It says whether it did.
func (s *Store) dropFree() bool {
	for _, p := range s.peers {
		if s.dropFreeOf(p) {
			return true
		}
	}
	return false
}

func (s *Store) dropFreeOf(p *peer) bool {
	for _, size := range slices.Backward(slices.Sorted(maps.Keys(p.free))) {
		if of := p.free[size]; len(of) > 0 && s.dropBerth(of[0]) == nil {
			p.free[size] = slices.Delete(of, 0, 1)
			return true
		}
	}
	return false
}

// dropBerth gives a berth, of no block, back to its peer once copies from it have ended.
func (s *Store) dropBerth(b *berth) error {
	if b.read != 0 {
		if err := s.dev.EventSynchronize(b.read); err != nil {
			return err
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	if b.read != 0 {
		_ = s.dev.EventDestroy(b.read) // it is lost where the driver fails to
	}
	b.on.taken -= b.size
	s.peerRoom = true
	return errors.Join(s.memory.Unmap(b.at, b.size), s.memory.Release(b.memory), s.memory.AddressFree(b.at, b.size))
}

// leaveBerth frees the berth of a block, if it has one.
func (s *Store) leaveBerth(b *block) {
	if b.berth == nil {
		return
	}
	p := b.berth.on
	s.peerRoom = true
	p.held.remove(b)
	p.free[b.size] = append(p.free[b.size], b.berth)
	b.berth = nil
}

// toPeer queues the copy of a block to a peer. It says whether one has room.
func (s *Store) toPeer(b *block) bool {
	to := s.takeBerth(b.size)
	if to == nil {
		return false
	}
	b.berth = to
	if err := s.copyToPeer(b); err != nil { // the host is tried instead
		s.loose = true
		s.leaveBerth(b)
		return false
	}
	return true
}

func (s *Store) copyToPeer(b *block) error {
	if err := s.follow(s.leaving, b); err != nil {
		return err
	}
	if b.berth.read != 0 {
		if err := s.dev.Follow(s.leaving, b.berth.read); err != nil {
			return err
		}
	}
	if err := s.dev.MemcpyDtoDAsync(b.berth.at, b.at, b.size, s.leaving); err != nil {
		return err
	}
	return s.end(b, s.leaving)
}

// fromPeer queues the copy of a block from its peer, and frees its berth.
func (s *Store) fromPeer(b *block) error {
	if err := s.dev.MemcpyDtoDAsync(b.at, b.berth.at, b.size, s.coming); err != nil {
		return err
	}
	read, err := s.dev.EventRecord(s.coming)
	if err != nil {
		return err
	}
	if b.berth.read != 0 {
		_ = s.dev.EventDestroy(b.berth.read) // it is lost where the driver fails to
	}
	b.berth.read = read
	if err := s.end(b, s.coming); err != nil {
		return err
	}
	s.stats.Peer -= b.size
	s.leaveBerth(b)
	return nil
}

// givePeer gives at most some more than amount bytes of a peer to others, while so many bytes of the host may be pinned: blocks go on to the host.
func (s *Store) givePeer(p *peer, amount, pinned int64) (given int64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	s.hostMost = min(s.options.Host, pinned)
	before := p.taken
	for before-p.taken < amount && err == nil {
		if s.dropFreeOf(p) {
			continue
		}
		b := p.held.first(amount - before + p.taken)
		if b == nil {
			break
		}
		err = s.toHost(b)
	}
	if given = before - p.taken; given > 0 {
		err = nil // what else could not go is found out by the next order
	}
	return given, err
}

// toHost moves a block from its peer to the host, and waits for that.
func (s *Store) toHost(b *block) error {
	b.busy = true
	err := s.copyOut(b)
	if err == nil {
		err = s.dev.StreamSynchronize(s.leaving)
		s.loose = s.loose || err != nil
	}
	b.busy = false
	s.settled.Broadcast()
	if err != nil {
		return fmt.Errorf("move %d bytes from another GPU to the host: %w", b.size, errors.Join(err, s.dirty(b)))
	}
	s.rested(b)
	s.stats.Peer -= b.size
	s.leaveBerth(b)
	s.arrive(b)
	return nil
}
