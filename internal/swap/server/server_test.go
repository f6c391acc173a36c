package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// TestTurns has three jobs compute that do not fit beside each other: each gets turns of the quantum, about as many as the others, and none
// is refused room. On a busy machine a turn takes longer, so turns are waited for, not a time.
func TestTurns(t *testing.T) {
	const quantum, turns = 100 * time.Millisecond, 4
	s, path := serve(t, Settings{Quantum: quantum, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	var programs []*program
	for range 3 {
		programs = append(programs, &program{t: t, card: c, want: 60, turns: make(chan struct{}, turns)})
	}
	runUntil(s, path, programs, func() { awaitTurns(programs, turns) })
	for i, p := range programs {
		if p.steps < 20*turns || p.refused > 0 || len(p.stints) < turns || len(p.stints) > 2*turns {
			t.Errorf("job %d made %d steps in %d turns, and was refused room %d times", i, p.steps, len(p.stints), p.refused)
		}
		for n, stint := range p.stints {
			if n > 0 && stint < quantum*8/10 {
				t.Errorf("job %d had a turn of %v", i, stint)
			}
		}
	}
	if c.used != 0 {
		t.Errorf("%d bytes are lost", c.used)
	}
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

// TestWeights has jobs of weights 3 and 1 compute that each want the whole card: they get it for three quanta and for one, each as often as the
// other.
func TestWeights(t *testing.T) {
	const quantum, turns = 100 * time.Millisecond, 8
	s, path := serve(t, Settings{Quantum: quantum, Weights: map[string]int{"job0": 3}, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	var programs []*program
	for range 2 {
		programs = append(programs, &program{t: t, card: c, want: 100, turns: make(chan struct{}, turns)})
	}
	runUntil(s, path, programs, func() { awaitTurns(programs, turns) })
	var medians [2]time.Duration
	for i, p := range programs {
		if len(p.stints) < turns || len(p.stints) > turns+2 || p.refused > 0 {
			t.Fatalf("job %d had %d turns, and was refused room %d times", i, len(p.stints), p.refused)
		}
		medians[i] = slices.Sorted(slices.Values(p.stints))[len(p.stints)/2]
	}
	if share := float64(medians[0]) / float64(medians[1]); share < 2 || share > 3.5 || medians[1] < quantum*8/10 {
		t.Errorf("turns of %v and %v, want %v and %v: %v, %v", medians[0], medians[1], 3*quantum, quantum, programs[0].stints, programs[1].stints)
	}
}

// TestIdleFirst has a job that computes get the memory of one that does not, at once.
func TestIdleFirst(t *testing.T) {
	_, path := serve(t, Settings{Quantum: time.Hour, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	idle, busy := &program{t: t, card: c, want: 80, idle: true}, &program{t: t, card: c, want: 90}
	var group sync.WaitGroup
	start, stop := make(chan struct{}), make(chan struct{})
	close(start)
	group.Go(func() { idle.run(path, "idle", start, stop) })
	time.Sleep(100 * time.Millisecond)
	group.Go(func() { busy.run(path, "busy", start, stop) })
	time.Sleep(700 * time.Millisecond)
	close(stop)
	group.Wait()
	if busy.steps < 50 || busy.refused > 0 || idle.away != 70 {
		t.Errorf("%d steps, refused %d times; %d bytes are away, want the missing 70", busy.steps, busy.refused, idle.away)
	}
}

// TestRefused asks for room that nobody can make.
func TestRefused(t *testing.T) {
	s, path := serve(t, Settings{Quantum: time.Hour, Host: 1000})
	p := &program{t: t, card: &card{capacity: 50}, want: 60}
	run(s, path, []*program{p}, 300*time.Millisecond)
	if p.refused == 0 {
		t.Error("no answer")
	}
}

// TestPlaceKept has a job be put to sleep while it waits for room: what it waits for next still comes before the request of one that asked
// later. Once it has had a turn it comes after that.
func TestPlaceKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := wire.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := wire.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := New(Settings{Quantum: time.Hour}, func(string) {})
	one, two := &job{number: 1, conn: conn}, &job{number: 2, conn: conn, state: wire.Asleep}
	s.jobs[1], s.jobs[2] = one, two
	one.rooms = []*want{one.newWant(wire.WantRoom)}
	s.tell(one, wire.Sleep, 1, nil)
	one.order, one.state = nil, wire.Asleep
	two.wake = two.newWant(wire.WantWake)
	s.try(one.rooms[0], time.Now())
	one.wake = one.newWant(wire.WantWake)
	if all := s.wants(time.Now()); len(all) != 2 || all[0].job != one {
		t.Error("the job that waited first is not served first")
	}
	one.state, one.wake = wire.Awake, nil
	s.tell(one, wire.Sleep, 1, nil)
	one.order, one.state, one.wake = nil, wire.Asleep, one.newWant(wire.WantWake)
	if all := s.wants(time.Now()); len(all) != 2 || all[0].job != two {
		t.Error("the job that has had a turn is served first")
	}
}

// TestReportCrosses has the report of a job cross the sleep of another: it still says that the card is full. The request for room is not
// refused on its word.
func TestReportCrosses(t *testing.T) {
	c, owner, other := ownerAndOther(t, time.Millisecond)
	time.Sleep(20 * time.Millisecond) // the owner has had its turn
	other.wantRoom(piece)
	order, err := owner.conn.Receive()
	if err != nil || order.Kind != wire.Sleep {
		t.Fatal(order.Kind, err)
	}
	owner.here, owner.away, owner.asleep = 0, 100, true // the card's own count does not change yet
	owner.send(wire.Message{Kind: wire.Done, Seq: order.Seq, Amount: 100})
	other.send(wire.Message{Kind: wire.Report})
	time.Sleep(20 * time.Millisecond)
	c.take(-100)
	other.send(wire.Message{Kind: wire.Report})
	other.hasRoom()
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

// ownerAndOther returns a card, a job that has all of it, and another one.
func ownerAndOther(t *testing.T, quantum time.Duration) (c *card, owner, other *program) {
	t.Helper()
	_, path := serve(t, Settings{Quantum: quantum, Host: 1000})
	c = &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	c.take(100)
	owner, other = &program{t: t, card: c, here: 100}, &program{t: t, card: c}
	owner.join(path, wire.Awake)
	other.join(path, wire.Awake)
	return c, owner, other
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

// TestFreed has a job free all its memory by itself while another waits for room, and what is free be reported later: the other gets the room.
func TestFreed(t *testing.T) {
	c, owner, other := ownerAndOther(t, time.Hour)
	other.wantRoom(piece)
	time.Sleep(2 * crossing)
	owner.here = 0
	owner.send(wire.Message{Kind: wire.Report})
	other.send(wire.Message{Kind: wire.Report})
	time.Sleep(20 * time.Millisecond)
	c.take(-100)
	other.send(wire.Message{Kind: wire.Report})
	other.hasRoom()
}

// TestEnding has the process of a job end while another waits for room, which takes longer than what is free is waited for otherwise: CUDA is down
// already, and the memory still taken.
func TestEnding(t *testing.T) {
	c, owner, other := ownerAndOther(t, time.Hour)
	other.wantRoom(piece)
	time.Sleep(2 * crossing)
	if err := owner.conn.Send(&wire.Message{Kind: wire.Report}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(freed + 200*time.Millisecond)
	other.send(wire.Message{Kind: wire.Report})
	time.Sleep(2 * crossing)
	c.take(-100)
	owner.conn.HangUp()
	other.send(wire.Message{Kind: wire.Report})
	other.hasRoom()
}

// TestStore has a job ask for room where a store of objects and a job that has its turn have it: what of the store nobody uses goes, first that of
// the store whose objects were not used for longer; it can neither be held asleep nor woken.
func TestStore(t *testing.T) {
	s, path := serve(t, Settings{Quantum: time.Hour, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	c.take(100)
	late, early, busy := &program{t: t, card: c, here: 40}, &program{t: t, card: c, here: 30}, &program{t: t, card: c, here: 30}
	other := &program{t: t, card: c}
	late.join(path, wire.Storing)
	early.join(path, wire.Storing)
	busy.join(path, wire.Awake)
	other.join(path, wire.Awake)
	late.evictable, early.evictable = 40, 20
	late.send(wire.Message{Kind: wire.Report, State: wire.Storing, Idle: int64(time.Second)})
	early.send(wire.Message{Kind: wire.Report, State: wire.Storing, Idle: int64(time.Minute)})
	time.Sleep(20 * time.Millisecond)
	other.wantRoom(30)
	for _, step := range []struct {
		store     *program
		want, has int64
	}{{early, 30, 20}, {late, 10, 40}} {
		order, err := step.store.conn.Receive()
		if err != nil || order.Kind != wire.Sleep || order.Amount != step.want {
			t.Fatalf("%+v, %v", order, err)
		}
		given := min(step.want, step.has)
		step.store.here -= given
		step.store.evictable = step.has - given
		c.take(-given)
		step.store.send(wire.Message{Kind: wire.Done, State: wire.Storing, Seq: order.Seq, Amount: given})
	}
	other.hasRoom()
	for _, m := range s.Jobs()[:2] {
		if m.State != wire.Storing {
			t.Errorf("%+v", m)
		}
	}
	if r := s.wake(s.jobs[1]); r.err != nil {
		t.Error(r.err)
	}
}

// TestStoreRefills has a job wait to wake beside a store that takes again what it gives up: another job gives up so much more.
func TestStoreRefills(t *testing.T) {
	t.Parallel()
	_, path := serve(t, Settings{Quantum: 20 * time.Millisecond, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	c.take(90)
	store, busy, sleeper := &program{t: t, card: c, here: 20, evictable: 20}, &program{t: t, card: c, here: 70}, &program{t: t, card: c, away: 75, asleep: true}
	store.join(path, wire.Storing)
	go store.refill()
	wakes(t, path, c, busy, sleeper, func() {})
}

// TestTaken has a job wait to wake while somebody takes a little of the room that is made for it, each time.
func TestTaken(t *testing.T) {
	t.Parallel()
	_, path := serve(t, Settings{Quantum: 20 * time.Millisecond, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	c.take(90)
	busy, sleeper := &program{t: t, card: c, here: 90}, &program{t: t, card: c, away: 75, asleep: true}
	if given := wakes(t, path, c, busy, sleeper, func() { c.take(3) }); given > 80 {
		t.Errorf("the other job gives up %d", given)
	}
}

// wakes waits until a job has found room to wake beside another one that has had its turn, and returns what that gave up. Something happens before
// each try.
func wakes(t *testing.T, path string, c *card, busy, sleeper *program, before func()) (given int64) {
	t.Helper()
	busy.join(path, wire.Awake)
	sleeper.join(path, wire.Asleep)
	time.Sleep(50 * time.Millisecond)
	all := busy.here
	go busy.sleep()
	sleeper.send(wire.Message{Kind: wire.WantWake})
	if err := sleeper.conn.Expect(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		order, err := sleeper.conn.Receive()
		if err != nil || order.Kind != wire.Wake {
			t.Fatal(order.Kind, err)
		}
		time.Sleep(30 * time.Millisecond)
		before()
		done := wire.Message{Kind: wire.Done, Seq: order.Seq}
		if c.take(sleeper.away) {
			busy.mu.Lock()
			defer busy.mu.Unlock()
			return all - busy.here
		}
		done.SetText("no memory")
		sleeper.send(done)
	}
	t.Error("the job does not wake")
	return 0
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

// TestForeign sends what is no message of a job: the server goes on.
func TestForeign(t *testing.T) {
	s, path := serve(t, Settings{Quantum: time.Hour})
	for kind := range wire.Shared + 2 {
		conn, err := wire.Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		m := wire.Message{Kind: kind, Seq: 99, Count: 1}
		m.SetName("nobody")
		for range 3 {
			_ = conn.Send(&m) // it may hang up
		}
		conn.Close()
	}
	for end := time.Now().Add(10 * time.Second); len(s.Jobs()) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	var text strings.Builder
	if err := s.WriteMetrics(&text); err != nil || len(s.Jobs()) > 0 || !strings.HasSuffix(text.String(), "# EOF\n") {
		t.Errorf("%d jobs, %v\n%s", len(s.Jobs()), err, &text)
	}
}

// TestHost divides the host's memory: a job that is pinning has what it may need, and the others what that leaves.
func TestHost(t *testing.T) {
	s := New(Settings{Host: 100}, func(string) {})
	one := &job{number: 1, pinned: 10, cards: []wire.Card{{Here: 50}}}
	two := &job{number: 2, cards: []wire.Card{{Here: 90}}}
	s.jobs[1], s.jobs[2] = one, two
	if n := s.hostFor(one); n != 100 {
		t.Errorf("the first may pin %d, want 100", n)
	}
	if n := s.hostFor(two); n != 40 {
		t.Errorf("beside it the second may pin %d, want 40", n)
	}
	one.pinned, one.pins = 20, 0
	if n := s.hostFor(two); n != 80 {
		t.Errorf("once the first has pinned 20 the second may pin %d, want 80", n)
	}
}

// TestHostTakenOver has jobs join that had pinned memory before: it counts once for each, and not beyond what the machine has.
func TestHostTakenOver(t *testing.T) {
	s := New(Settings{Host: 100, Left: 200}, func(string) {})
	for _, step := range []struct {
		pid          int
		state        wire.State
		pinned, want int64
	}{{1, wire.Awake, 0, 100}, {1, wire.Awake, 80, 100}, {2, wire.Asleep, 40, 130}, {2, wire.Awake, 40, 130}, {2, wire.Storing, 40, 160}, {3, wire.Awake, 80, 200}} {
		if s.takeOver(&job{pid: step.pid, state: step.state, pinned: step.pinned}); s.settings.Host != step.want {
			t.Errorf("after %+v: %d", step, s.settings.Host)
		}
	}
	asked := New(Settings{Host: 100}, func(string) {})
	if asked.takeOver(&job{pinned: 40}); asked.settings.Host != 100 {
		t.Errorf("what was asked for becomes %d", asked.settings.Host)
	}
}

// TestStoreFails has a job ask for room of a store that reports some and cannot give it up: in the end the request is refused.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	_, path := serve(t, Settings{Quantum: time.Hour, Host: 1000})
	c := &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}
	c.take(100)
	store, other := &program{t: t, card: c, here: 100, evictable: 100}, &program{t: t, card: c}
	store.join(path, wire.Storing)
	other.join(path, wire.Awake)
	other.wantRoom(30)
	go func() {
		for {
			order, err := store.conn.Receive()
			if err != nil {
				return
			}
			done := wire.Message{Kind: wire.Done, State: wire.Storing, Seq: order.Seq}
			done.SetText("the host is full")
			store.send(done)
		}
	}()
	for end := time.Now().Add(30 * time.Second); ; {
		answer, err := other.conn.Receive()
		if err != nil || time.Now().After(end) {
			t.Fatal("no answer: ", err)
		}
		if answer.Kind != wire.Room {
			continue
		}
		if answer.Amount != 0 || !strings.Contains(answer.TextText(), "the host is full") {
			t.Errorf("%+v", answer)
		}
		return
	}
}
