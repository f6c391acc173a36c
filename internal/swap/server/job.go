package server

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"gm/internal/swap/server/wire"
)

// job is a process whose memory can sleep. The lock of the server guards it.
type job struct {
	number  int
	conn    *wire.Conn
	pid     int
	uid     uint32
	name    string
	command string

	state  wire.State // Awake or Asleep
	cards  []wire.Card
	pinned int64
	pins   int64         // what it may be pinning now, with what it has pinned
	idle   time.Duration // when it reported
	at     time.Time     // when it reported
	why    string        // it cannot sleep, "" if it can
	ending time.Time     // since when it has reported no cards, which it had: its process is ending, and they may still be taken

	turn    time.Time // since when it has had its memory
	resting time.Time // until then it is not asked to sleep
	failed  int       // orders in a row by which it moved nothing
	ready   bool      // it was told to prepare for sleep, and has been idle since
	held    bool      // it wakes only when gmswap ctl says so
	wake    *want     // nil: no thread of it waits
	rooms   []*want   // allocations that wait for room
	unmet   time.Time // since when it has waited for room, where it was put to sleep before it got that; zero once it has room, or had a turn
	retried time.Time // Server.released when it was last told to try again although no job could make room
	order   *order    // under way
}

// want is memory that a job waits for.
type want struct {
	job     *job
	kind    wire.Kind
	seq     uint64
	since   time.Time   // this was asked for
	first   time.Time   // the job has waited: before since, if it was put to sleep meanwhile
	missing []wire.Card // Away bytes are missing on each; nil: not known
	tried   time.Time   // of a wake: when it was last ordered
	vain    int         // how many jobs were put to sleep for it and moved nothing
	stores  []*job      // those that were asked for memory for it
	taken   int64       // bytes of what was given up for it that others have taken
	wakes   int         // how often a wake was ordered
	why     string      // with a colon, what the last of them said
	done    chan result // gets the result; nil: nobody waits for that
}

// order is what a job was told to do, and has not done.
type order struct {
	kind wire.Kind
	seq  uint64
	want *want       // for which it makes room, nil if for none
	done chan result // gets the result; nil: nobody waits for that
}

// result is that of an order.
type result struct {
	moved int64 // bytes
	took  time.Duration
	err   error
}

func (r result) String() string {
	const gb = 1e9
	return fmt.Sprintf("%.2f GB in %.3f s", float64(r.moved)/gb, r.took.Seconds())
}

func (j *job) String() string {
	if j.name != "" {
		return fmt.Sprintf("%s (process %d)", j.name, j.pid)
	}
	return fmt.Sprintf("process %d", j.pid)
}

// send sends a message, or hangs up.
func (j *job) send(m *wire.Message) {
	if err := j.conn.Send(m); err != nil {
		j.conn.HangUp()
	}
}

// report takes what a job says of itself.
func (j *job) report(m *wire.Message) {
	before := j.cards
	j.state, j.pinned, j.cards = m.State, m.Pinned, append(j.cards[:0], m.CardList()...)
	if j.state == wire.Waiting { // which the server knows by itself
		j.state = wire.Asleep
	}
	switch {
	case m.Count > 0:
		j.ending = time.Time{}
	case len(before) > 0:
		j.ending = time.Now()
	}
	j.idle, j.at = time.Duration(m.Idle), time.Now()
	if m.Kind == wire.Report {
		j.why = m.TextText()
	}
}

// idleFor returns how long a job has launched nothing.
func (j *job) idleFor(now time.Time) time.Duration { return j.idle + now.Sub(j.at) }

// card returns what a job has of a card, nil if it does not use it.
func (j *job) card(bus [16]byte) *wire.Card {
	for i := range j.cards {
		if j.cards[i].Bus == bus {
			return &j.cards[i]
		}
	}
	return nil
}

// movable returns the bytes of a job that can leave a card.
func (j *job) movable(bus [16]byte) int64 {
	c := j.card(bus)
	switch {
	case c == nil:
		return 0
	case j.state == wire.Storing:
		return min(c.Evictable, c.Here)
	}
	return c.Here
}

// here returns the bytes of a job on all cards.
func (j *job) here() (n int64) {
	for i := range j.cards {
		n += j.cards[i].Here
	}
	return n
}

// waits says what a job waits for, "" if for nothing.
func (j *job) waits() string {
	switch {
	case j.held:
		return "it is held asleep until gmswap ctl wake"
	case j.wake != nil:
		return "it waits to wake"
	case len(j.rooms) > 0:
		return "it waits for room to allocate"
	}
	return ""
}

// handle does what a message of a job asks for.
func (s *Server) handle(j *job, m *wire.Message) {
	switch m.Kind {
	case wire.Report:
		before := j.here()
		if j.report(m); j.here() < before { // what others report as free may be older
			s.released = time.Now()
		}
	case wire.WantWake:
		if j.wake == nil && j.state != wire.Storing {
			j.wake = j.newWant(wire.WantWake)
		}
	case wire.WantRoom:
		const most = 64 // threads of a job that wait
		if m.Count == 1 && len(j.rooms) < most {
			if c := j.card(m.Cards[0].Bus); c != nil {
				c.Free, j.at = m.Cards[0].Free, time.Now()
			}
			w := j.newWant(wire.WantRoom)
			w.seq, w.missing = m.Seq, append([]wire.Card(nil), m.CardList()...)
			j.rooms = append(j.rooms, w)
		}
	case wire.Done:
		s.done(j, m)
	}
}

// newWant returns what a job waits for from now on. A job that was put to sleep while it waited for room is still as old a waiter.
func (j *job) newWant(kind wire.Kind) *want {
	now := time.Now()
	return &want{job: j, kind: kind, since: now, first: cmp.Or(j.unmet, now)}
}

// done takes the result of an order.
func (s *Server) done(j *job, m *wire.Message) {
	o := j.order
	if o == nil || o.seq != m.Seq {
		return
	}
	j.report(m)
	j.order, j.pins = nil, 0
	r := result{moved: m.Amount, took: time.Duration(m.Took)}
	if text := m.TextText(); text != "" {
		r.err = errors.New(text)
	}
	switch {
	case o.kind == wire.Sleep:
		s.slept(j, o, r)
	case r.err == nil:
		s.woke(j, r)
	case j.wake != nil:
		j.wake.fails(missing(m))
	}
	if o.done != nil {
		o.done <- r
	}
}

// fails takes note of what a wake lacked: there was room for all of it, unless it was the first.
func (w *want) fails(missing []wire.Card) {
	w.missing = missing
	if w.wakes > 1 {
		for i := range missing {
			w.taken += missing[i].Away
		}
	}
}

// missing returns what a job that could not wake lacks: on each card what is away less what is free, or a little where that is not why.
func missing(m *wire.Message) (all []wire.Card) {
	for _, c := range m.CardList() {
		if c.Away > c.Free {
			all = append(all, wire.Card{Bus: c.Bus, Away: c.Away - c.Free})
		}
	}
	return all
}

func (s *Server) slept(j *job, o *order, r result) {
	j.failed++
	if r.moved > 0 {
		j.failed = 0
	}
	if r.err != nil || r.moved == 0 {
		j.resting = time.Now().Add(j.rest())
		if o.want != nil && j.state != wire.Storing {
			o.want.vain++
		}
	}
	switch {
	case r.err != nil:
		j.held = false
		if o.want != nil {
			o.want.why = ": " + r.err.Error()
		}
		s.log(fmt.Sprintf("%s does not sleep: %v", j, r.err))
	case r.moved > 0:
		s.released = time.Now()
		s.log(fmt.Sprintf("%s sleeps: %v to the host", j, r))
	}
}

// rest returns for how long a job is not asked to sleep again after it moved nothing: a store, which can tell what it could give up, for
// longer each time.
func (j *job) rest() time.Duration {
	const most = 4 // doublings
	if j.state == wire.Storing {
		return rest << min(max(j.failed-1, 0), most)
	}
	return rest
}

func (s *Server) woke(j *job, r result) {
	j.turn, j.held = time.Now(), false
	if w := j.wake; w != nil {
		j.wake = nil
		w.finish(r)
	}
	s.log(fmt.Sprintf("%s is awake: %v from the host", j, r))
}

func (w *want) finish(r result) {
	if w.done != nil {
		w.done <- r
	}
}

var errEnded = errors.New("the job has ended")

// finish ends all that others wait for of a job that is gone.
func (j *job) finish() {
	gone := result{err: errEnded}
	if j.order != nil && j.order.done != nil {
		j.order.done <- gone
	}
	if j.wake != nil {
		j.wake.finish(gone)
	}
}
