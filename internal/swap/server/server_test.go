package server

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gm/internal/swap/server/wire"
)

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
