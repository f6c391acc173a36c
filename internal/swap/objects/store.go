// Package objects keeps the objects of a process that do not fit on a GPU together: Ravenstore's client (sections 1.2 and 3). A program
// creates an object, puts it when it does not need it for a while, and gets it when it does. What has been put may leave the card for
// pinned memory of the host, and that for a file, whenever others need the room: the program's own objects, or those of other processes and
// the jobs of the memory server. Ravenstore's clients get a new handle when an object comes back; here it keeps its addresses.
//
//	store.go     a store, and what it has done
//	object.go    create, get, put, free
//	block.go     memory that moves as a whole: one large object, or a tray of small ones
//	tray.go      small objects
//	order.go     which block goes first: the policies
//	room.go      physical memory for blocks, and where it comes from
//	evict.go     blocks leave the card
//	peer.go      they go to other GPUs, where there is room
//	fetch.go     they come back: when asked for, and ahead of that
//	file.go      what the host has no room for
//	client.go    the memory server
package objects

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/retry"
	"gm/internal/swap/engine"
	"gm/internal/swap/host"
)

// Options are those of a store.
type Options struct {
	Limit     int64    // bytes of the card that the store may take, rounded down to cuda.Granularity; 0: no limit but the card's
	Host      int64    // bytes of the host that it may pin for what has left the card
	Folder    string   // of the file for what the host has no room for, "" for none
	Peers     []int    // ordinals of other GPUs, to whose memory objects go rather than to the host
	PeerLimit int64    // bytes that the store may take of them, in all
	Policy    Policy   // which objects leave first
	Server    string   // the socket of the memory server, "" for none
	Name      string   // of this process at the server
	Evicted   func(ID) // is told of each object that has left the card, in the thread that made it leave, unless it is nil. It does not use the store
	Thread    func()   // is called at the start of each goroutine of the store, which is bound to its thread, unless it is nil
}

// Store is the objects of this process on one card. It is safe for concurrent use.
type Store struct {
	dev     *driver.Device
	memory  *retry.Device // the same for memory and addresses, which go back in the end although the driver refuses
	options Options
	limit   int64 // bytes
	quota   int64 // bytes of each card that the server allows, 0 for all
	reserve int64 // bytes of the card that are left to others when objects are fetched ahead

	mu      sync.Mutex
	settled sync.Cond // a block is no longer busy
	engine  *engine.Engine
	leaving cuda.Stream // copies to the host wait in it for the work on what they copy
	coming  cuda.Stream // and this one for what comes back
	objects map[ID]*object
	last    ID
	now     int64 // counts creates, gets and puts
	trays   map[int64][]*block
	file    *file
	closed  bool
	waiting int  // calls that wait for room, without the lock
	loose   bool // the device may have work on blocks that no event stands for

	taken      int64 // bytes of the card, in pieces
	spare      map[int64][]cuda.Handle
	spareBytes int64
	warm       map[int64][]*block // of no object, with their memory, by size
	warmBytes  int64

	evictable *order // blocks on the card that nobody uses
	uncopied  *order // those of them of which the host has no copy
	copied    int64  // bytes of blocks that were copied behind the program, and have not left
	pressed   bool   // the last block that came found no room until others left
	onHost    *order
	peers     []*peer
	peerRoom  bool     // the last block that was to go to them could
	soon      *order   // blocks that are away and whose next use is known, the first one first
	copies    []*block // on the card, with a copy on the host: those that are not any longer are passed over
	left      []ID     // that Evicted is to be told of
	hostMost  int64    // bytes of the host that the server allows
	quiet     time.Time
	stats     Stats

	client *client
	ahead  chan struct{} // there may be room to fetch objects ahead
	ended  chan struct{}
	worker sync.WaitGroup
}

// Stats is what a store has, and has done.
type Stats struct {
	Objects            int64
	Card, Unused       int64 // bytes taken from the card, and those of them that no object has
	Host, Pinned, File int64 // bytes of blocks on the host and in the file, and bytes that are pinned
	Peer               int64 // bytes of blocks on other GPUs
	Gets, Misses       int64 // and those of them that found the object away
	Evictions, Clean   int64 // blocks that left the card, and those of them of which the host had a copy
	EvictedBytes       int64
	Evicting           time.Duration // that evictions took
	Fetches, Ahead     int64         // blocks that came back, and those of them before they were asked for
	FetchedBytes       int64
	Spilled, Restored  int64 // bytes that went to the file, and came from it
}

// Open makes a store for a device, which the store uses alone and closes.
func Open(dev *driver.Device, o Options) (*Store, error) {
	s := &Store{
		dev: dev, memory: retry.New(dev, func(string, error) {}), options: o, limit: o.Limit / cuda.Granularity * cuda.Granularity, hostMost: o.Host,
		objects: map[ID]*object{}, trays: map[int64][]*block{}, spare: map[int64][]cuda.Handle{}, warm: map[int64][]*block{},
		evictable: newOrder(o.Policy, toLeave), uncopied: newOrder(o.Policy, toCopy), onHost: newOrder(o.Policy, toLeave), soon: newOrder(soonest, toCopy),
		ahead: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.settled.L = &s.mu
	if o.Limit < 0 || o.Limit > 0 && s.limit == 0 {
		return nil, fmt.Errorf("a store of %d bytes: the least is %d", o.Limit, cuda.Granularity)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open a store: %w", err)
	}
	s.worker.Go(s.fetchAhead)
	if o.Server != "" {
		s.client = newClient(s)
		connected := s.client.connect() // before the first object, which may need room that others have
		s.worker.Go(func() { s.client.work(connected) })
	}
	return s, nil
}

func (s *Store) open() error {
	_, total, err := s.dev.MemInfo()
	if err != nil {
		return err
	}
	s.reserve = total / 32
	if err := s.openPeers(); err != nil {
		return err
	}
	bus, err := s.dev.PCIBusID()
	if err != nil {
		return err
	}
	if s.options.Folder != "" {
		if s.file, err = openFile(s.options.Folder); err != nil {
			return err
		}
	}
	for _, stream := range []*cuda.Stream{&s.leaving, &s.coming} {
		if *stream, err = s.dev.StreamCreate(); err != nil {
			return errors.Join(err, s.shut())
		}
	}
	s.engine, err = engine.Open(s.dev, engine.Options{Budget: s.options.Host, Node: host.Node(bus), Chunk: chunk})
	if err != nil {
		return errors.Join(err, s.shut())
	}
	return nil
}

// chunk is how much memory of the host is pinned at a time, in bytes: small enough for the
// evictions that wait for it.
const chunk = 128 << 20

// shut closes what open has opened but the engine.
func (s *Store) shut() error {
	err := s.file.close()
	for _, stream := range []cuda.Stream{s.leaving, s.coming} {
		if stream != 0 {
			err = errors.Join(err, s.dev.StreamDestroy(stream))
		}
	}
	return err
}

// Stats returns what the store has, and has done.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.stats
	x.Objects, x.Card, x.Unused = int64(len(s.objects)), s.taken, s.unusedBytes()
	if !s.closed {
		x.Pinned = s.engine.Stats().Pinned
	}
	return x
}

// Close waits for the work of the device and gives up all objects and their memory, the device, and the connection to the server. Where it
// cannot tell that the work has ended the memory stays until the process ends.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.closed = true
	close(s.ended)
	s.settled.Broadcast()
	s.mu.Unlock()
	if s.client != nil {
		s.client.hangUp()
	}
	s.worker.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting > 0 {
		s.settled.Wait()
	}
	s.loose = true
	if err := s.settle(); err != nil { // the device may use all that there is
		return fmt.Errorf("close a store: %w", err)
	}
	var err error
	for _, b := range s.blocks() {
		err = errors.Join(err, s.dissolve(b))
	}
	s.release(s.spareBytes)
	for s.dropFree() {
	}
	err = errors.Join(err, s.engine.Close(), s.shut(), s.dev.Close())
	if err != nil {
		return fmt.Errorf("close a store: %w", err)
	}
	return nil
}

// enterThread begins a goroutine of the store.
func (s *Store) enterThread() {
	if s.options.Thread != nil {
		runtime.LockOSThread()
		s.options.Thread()
	}
}

// blocks returns all blocks, those of no object included.
func (s *Store) blocks() (all []*block) {
	seen := map[*block]bool{}
	for _, o := range s.objects {
		if !seen[o.block] {
			seen[o.block] = true
			all = append(all, o.block)
		}
	}
	for _, of := range s.warm {
		all = append(all, of...)
	}
	return all
}

var errClosed = errors.New("the store is closed")

// lock begins a call of the program; unlock ends it, and tells the program what has left the card.
func (s *Store) lock() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	return nil
}

func (s *Store) unlock() {
	left := s.left
	s.left = nil
	s.mu.Unlock()
	if s.options.Evicted != nil {
		for _, id := range left {
			s.options.Evicted(id)
		}
	}
}
