package objects

import (
	"errors"
	"sync"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/server/wire"
)

const (
	// beat is how often the server is told how the store is, and tried where there is none.
	beat = 500 * time.Millisecond
	// beyond is what a card is to have free beside what is asked for, in bytes: the next objects find it there.
	beyond = 64 << 20
	// retries is how often memory that is free and could not be had is tried again, each after a millisecond, and answers how often the server
	// is believed that there is room.
	retries = 50
	answers = 50
)

// client is the store as the memory server knows it. Its goroutine alone receives and connects; others send.
type client struct {
	store *Store
	bus   [16]byte

	mu    sync.Mutex
	conn  *wire.Conn // nil while there is no server
	seq   uint64
	rooms map[uint64]chan bool // requests for room
	ended bool
}

func newClient(s *Store) *client {
	bus, _ := s.dev.PCIBusID() // known: open has asked
	return &client{store: s, bus: wire.BusOf(bus), rooms: map[uint64]chan bool{}}
}

// work does what the server says until the store is closed.
func (c *client) work(connected bool) {
	c.store.enterThread()
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		if connected || c.connect() {
			c.serve(t)
		}
		connected = false
		select {
		case <-c.store.ended:
			return
		case <-t.C:
		}
	}
}

// connect connects to the server, if there is one.
func (c *client) connect() bool {
	conn, err := wire.Dial(c.store.options.Server)
	if err != nil {
		return false
	}
	hello := c.message(wire.Hello)
	hello.SetName(c.store.options.Name)
	welcome := wire.Message{}
	if err = errors.Join(conn.Expect(2*time.Second), conn.Send(&hello)); err == nil {
		welcome, err = conn.Receive()
	}
	if err = errors.Join(err, conn.Expect(0)); err != nil || welcome.Kind != wire.Welcome {
		_ = conn.Close() // nothing was lost
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close() // nothing was lost
		return false
	}
	c.conn = conn
	c.store.bound(welcome.Amount)
	return true
}

// bound keeps to the server's quota.
func (s *Store) bound(quota int64) {
	if quota = quota / cuda.Granularity * cuda.Granularity; quota == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = quota
	if s.limit == 0 || quota < s.limit {
		s.limit = quota
	}
}

// unbound ends what the server allowed of the host.
func (s *Store) unbound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostMost = s.options.Host
}

// serve follows orders until the connection ends. A goroutine of its own receives.
func (c *client) serve(t *time.Ticker) {
	heard, conn := make(chan wire.Message), c.conn
	go func() {
		defer close(heard)
		for {
			m, err := conn.Receive()
			if err != nil {
				return
			}
			heard <- m
		}
	}()
	c.report()
	for {
		select {
		case m, open := <-heard:
			if !open {
				c.leave()
				return
			}
			c.hear(&m)
		case <-t.C:
			c.report()
		}
	}
}

// hear does what the server says.
func (c *client) hear(m *wire.Message) {
	switch m.Kind {
	case wire.Sleep:
		began := time.Now()
		given, err := c.obey(m)
		done := c.message(wire.Done)
		done.SetText("")
		done.Seq, done.Took = m.Seq, int64(time.Since(began))
		if err != nil {
			done.SetText(err.Error())
		}
		done.Amount = given
		c.send(&done)
	case wire.Room:
		c.mu.Lock()
		defer c.mu.Unlock()
		if answer := c.rooms[m.Seq]; answer != nil {
			answer <- m.Amount == 1
			delete(c.rooms, m.Seq)
		}
	}
}

// obey gives up what an order is for: bytes of a card, or all.
func (c *client) obey(m *wire.Message) (given int64, err error) {
	if m.Amount == 0 && m.Count == 0 {
		return c.store.giveAll(m.Pinned, c.report)
	}
	return c.store.giveUp(c.store.peerOf(m), m.Amount, m.Pinned, c.report)
}

// message returns a message that says how the store is: as a job that is always awake, and can give up what nobody uses.
func (c *client) message(kind wire.Kind) wire.Message {
	m, cards := c.store.message(kind)
	var err error
	if cards[0].Free, cards[0].Total, err = c.store.dev.MemInfo(); err != nil { // after the account: what was freed between is in both rather than in none
		return m
	}
	cards[0].Bus = c.bus
	m.SetCards(cards)
	return m
}

// message returns a message, and the cards: the store's own first.
func (s *Store) message(kind wire.Kind) (m wire.Message, cards []wire.Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m = wire.Message{Kind: kind, State: wire.Storing}
	own := wire.Card{Here: s.taken, Away: s.stats.Host + s.stats.File, Evictable: s.unusedBytes() + s.evictable.bytes()}
	cards = []wire.Card{own}
	for _, p := range s.peers {
		cards = append(cards, wire.Card{Bus: p.bus, Here: p.taken, Evictable: p.taken})
	}
	if b := s.evictable.first(0); b != nil {
		m.Idle = int64(time.Since(b.put))
	}
	if !s.closed {
		m.Pinned = s.engine.Stats().Pinned
	}
	if own.Evictable+s.onPeers() == 0 {
		m.SetText("all of its objects are in use")
	}
	return m, cards
}

// peerOf returns the peer whose memory an order is for, nil if it is for the store's own card.
func (s *Store) peerOf(m *wire.Message) *peer {
	for _, p := range s.peers {
		if m.Count > 0 && m.Cards[0].Bus == p.bus {
			return p
		}
	}
	return nil
}

func (c *client) report() {
	m := c.message(wire.Report)
	c.send(&m)
}

// send sends a message, or hangs up: the receiver notices.
func (c *client) send(m *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.conn.Send(m) != nil {
		c.conn.HangUp()
	}
}

// leave ends the connection, whose receiver has returned.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.Close() // nothing was lost
	c.conn = nil
	c.store.unbound()
	for seq, answer := range c.rooms {
		answer <- false
		delete(c.rooms, seq)
	}
}

// hangUp ends the connection, for good.
func (c *client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.conn != nil {
		c.conn.HangUp()
	}
}

// room asks for need bytes of the card, with the lock of the store, which it gives up meanwhile. It says whether it is worth trying again, as
// was done so many times.
func (c *client) room(need int64, tries int) bool {
	if tries >= retries+answers {
		return false
	}
	c.store.waiting++
	c.store.mu.Unlock()
	defer func() {
		c.store.mu.Lock()
		c.store.waiting--
		c.store.settled.Broadcast()
	}()
	free, _, err := c.store.dev.MemInfo()
	if err != nil {
		return false
	}
	if free >= need+beyond && tries < retries { // it has become free
		time.Sleep(time.Millisecond)
		return true
	}
	answer := c.ask(wire.Card{Bus: c.bus, Free: free, Away: max(need+beyond-free, beyond)})
	return answer != nil && <-answer
}

// ask passes a request for room on to the server. It returns nil if there is none.
func (c *client) ask(x wire.Card) chan bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.ended {
		return nil
	}
	c.seq++
	m := wire.Message{Kind: wire.WantRoom, Seq: c.seq}
	m.SetCards([]wire.Card{x})
	if c.conn.Send(&m) != nil {
		c.conn.HangUp()
		return nil
	}
	answer := make(chan bool, 1)
	c.rooms[c.seq] = answer
	return answer
}
