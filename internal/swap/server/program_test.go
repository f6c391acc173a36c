package server

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gm/internal/swap/server/wire"
)

// card is a simulated GPU.
type card struct {
	mu             sync.Mutex
	capacity, used int64
	bus            [16]byte
}

// take takes memory if there is enough.
func (c *card) take(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used+n > c.capacity {
		return false
	}
	c.used += n
	return true
}

func (c *card) free() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capacity - c.used
}

// program is a simulated job: it wants so much memory, piece by piece, and computes whenever it has all.
type program struct {
	t          *testing.T
	card       *card
	conn       *wire.Conn
	want       int64
	here, away int64
	evictable  int64 // of a store
	asleep     bool
	asked      bool // for room
	steps      int
	woke       time.Time
	stints     []time.Duration // between a wake and the next sleep
	turns      chan struct{}   // one for each stint, if somebody waits for them
	refused    int
	idle       bool       // it computes nothing
	mu         sync.Mutex // held by sleep
}

const piece = 10

func (p *program) send(m wire.Message) {
	if p.asleep {
		m.State = wire.Asleep
	}
	if p.idle {
		m.Idle = int64(time.Hour)
	}
	if m.Kind != wire.WantRoom {
		m.SetCards([]wire.Card{{Bus: p.card.bus, Total: p.card.capacity, Free: p.card.free(), Here: p.here, Away: p.away, Evictable: p.evictable}})
	}
	if err := p.conn.Send(&m); err != nil {
		p.t.Log(err)
	}
}

// run joins, and runs from when start is closed until stop is.
func (p *program) run(path, name string, start, stop <-chan struct{}) {
	var err error
	if p.conn, err = wire.Dial(path); err != nil {
		p.t.Error(err)
		return
	}
	hello := wire.Message{Kind: wire.Hello}
	hello.SetName(name)
	p.send(hello)
	said := make(chan wire.Message, 10)
	go func() {
		defer close(said)
		for {
			m, err := p.conn.Receive()
			if err != nil {
				return
			}
			said <- m
		}
	}()
	<-start
	ticks := time.NewTicker(2 * time.Millisecond)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			p.card.take(-p.here)
			p.conn.HangUp()
			for range said {
			}
			p.conn.Close()
			return
		case m := <-said:
			select {
			case <-stop: // the others may be gone: what the server says now is about an empty machine
			default:
				p.obey(&m)
			}
		case <-ticks.C:
			p.work()
			if n%4 == 0 {
				p.send(wire.Message{Kind: wire.Report})
			}
		}
	}
}

// work computes, or gets more memory.
func (p *program) work() {
	switch {
	case p.asleep || p.asked:
	case p.here == p.want:
		p.steps++
	case p.card.take(piece):
		p.here += piece
	default:
		p.asked = true
		p.send(wire.Message{Kind: wire.Report})
		m := wire.Message{Kind: wire.WantRoom}
		m.SetCards([]wire.Card{{Bus: p.card.bus, Free: p.card.free(), Away: piece}})
		p.send(m)
	}
}

func (p *program) obey(m *wire.Message) {
	done := wire.Message{Kind: wire.Done, Seq: m.Seq}
	switch m.Kind {
	case wire.Sleep:
		n := p.here
		if m.Amount > 0 {
			n = min(n, m.Amount)
		}
		if !p.asleep && p.here == p.want {
			p.stints = append(p.stints, time.Since(p.woke))
			if len(p.stints) <= cap(p.turns) {
				p.turns <- struct{}{}
			}
		}
		p.here, p.away, p.asleep, done.Amount = p.here-n, p.away+n, p.asleep || n > 0, n
		p.card.take(-n)
		p.send(done)
		if !p.idle {
			p.send(wire.Message{Kind: wire.WantWake})
		}
	case wire.Wake:
		if p.card.take(p.away) {
			p.here, p.away, p.asleep, p.woke = p.here+p.away, 0, false, time.Now()
		} else {
			done.SetText("there is no room")
		}
		p.send(done)
	case wire.Room:
		p.asked = false
		if m.Amount == 0 {
			p.refused++
		}
	}
}

// serve starts a server for a test.
func serve(t *testing.T, settings Settings) (s *Server, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "socket")
	l, err := wire.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s = New(settings, func(string) {})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// run runs programs for a time.
func run(s *Server, path string, programs []*program, within time.Duration) {
	runUntil(s, path, programs, func() { time.Sleep(within) })
}

// runUntil runs programs until a function returns. None takes memory before the server knows all: it would be that of a stranger.
func runUntil(s *Server, path string, programs []*program, enough func()) {
	var group sync.WaitGroup
	start, stop := make(chan struct{}), make(chan struct{})
	for i, p := range programs {
		group.Go(func() { p.run(path, fmt.Sprint("job", i), start, stop) })
	}
	for end := time.Now().Add(10 * time.Second); len(s.Jobs()) < len(programs) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	close(start)
	enough()
	close(stop)
	group.Wait()
}

// awaitTurns waits until each program has had so many turns.
func awaitTurns(programs []*program, turns int) {
	late := time.After(time.Minute)
	for _, p := range programs {
		for range turns {
			select {
			case <-p.turns:
			case <-late:
				return
			}
		}
	}
}

// join connects a program that a test plays, and ends its connection with the test.
func (p *program) join(path string, state wire.State) {
	p.t.Helper()
	var err error
	if p.conn, err = wire.Dial(path); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.conn.Close() })
	p.send(wire.Message{Kind: wire.Hello, State: state})
	if m, err := p.conn.Receive(); err != nil || m.Kind != wire.Welcome {
		p.t.Fatal(m.Kind, err)
	}
}

// hasRoom checks that the program is told of room.
func (p *program) hasRoom() {
	p.t.Helper()
	if answer, err := p.conn.Receive(); err != nil || answer.Kind != wire.Room || answer.Amount == 0 {
		p.t.Errorf("%v, %d: %s, %v", answer.Kind, answer.Amount, answer.TextText(), err)
	}
}

// wantRoom asks for room on the card.
func (p *program) wantRoom(bytes int64) {
	m := wire.Message{Kind: wire.WantRoom}
	m.SetCards([]wire.Card{{Bus: p.card.bus, Away: bytes}})
	p.send(m)
}

// refill obeys as a store does that soon takes again what it gives up.
func (p *program) refill() {
	for {
		order, err := p.conn.Receive()
		if err != nil {
			return
		}
		given := min(order.Amount, p.evictable)
		p.card.take(-given)
		p.here, p.evictable = p.here-given, p.evictable-given
		p.send(wire.Message{Kind: wire.Done, State: wire.Storing, Seq: order.Seq, Amount: given})
		time.Sleep(10 * time.Millisecond)
		if p.card.take(given) {
			p.here, p.evictable = p.here+given, p.evictable+given
			p.send(wire.Message{Kind: wire.Report, State: wire.Storing})
		}
	}
}

// sleep gives up what is asked for.
func (p *program) sleep() {
	for {
		order, err := p.conn.Receive()
		if err != nil {
			return
		}
		p.mu.Lock()
		given := min(order.Amount, p.here)
		p.card.take(-given)
		p.here, p.away, p.asleep = p.here-given, p.away+given, true
		p.mu.Unlock()
		p.send(wire.Message{Kind: wire.Done, Seq: order.Seq, Amount: given})
	}
}
