package server

import (
	"strings"
	"testing"
	"time"

	"gm/internal/swap/server/wire"
)

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
