package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gm/internal/swap/server/wire"
)

// schedule serves what jobs wait for. On a card that one of them waits for, none that comes after it is served.
func (s *Server) schedule(now time.Time) {
	taken := map[[16]byte]bool{}
	for _, w := range s.wants(now) {
		buses := w.buses()
		promised := slices.ContainsFunc(buses, func(bus [16]byte) bool {
			g := s.grants[bus]
			return taken[bus] || g.job != nil && g.job != w.job && now.Before(g.until)
		})
		if promised || !s.try(w, now) {
			for _, bus := range buses {
				taken[bus] = true
			}
		}
	}
}

// grant is room on a card that a job was told of, which others leave to it for a moment.
type grant struct {
	job   *job
	until time.Time
}

// grantTime is how long a job has to take the room.
const grantTime = 250 * time.Millisecond

// wants returns what is waited for: first by those who have their turn, who else would lose what they have just got, then the oldest first.
func (s *Server) wants(now time.Time) (all []*want) {
	for _, j := range s.jobs {
		if j.wake != nil && !j.held {
			all = append(all, j.wake)
		}
		all = append(all, j.rooms...)
	}
	slices.SortFunc(all, func(a, b *want) int {
		x, y := s.turnOf(a.job, now), s.turnOf(b.job, now)
		return cmp.Or(x.Compare(y), a.first.Compare(b.first), cmp.Compare(a.job.number, b.job.number), cmp.Compare(a.seq, b.seq))
	})
	return all
}

// turnOf returns since when a job has its turn, or now if it has none.
func (s *Server) turnOf(j *job, now time.Time) time.Time {
	if j.state == wire.Awake && !now.After(s.turnEnd(j)) {
		return j.turn
	}
	return now
}

// turnEnd returns until when a job keeps its memory while others wait for it.
func (s *Server) turnEnd(j *job) time.Time {
	return j.turn.Add(s.settings.Quantum * time.Duration(max(s.settings.Weights[j.name], 1)))
}

// buses returns the cards that memory is waited for on.
func (w *want) buses() (all [][16]byte) {
	cards := w.job.cards
	if w.kind == wire.WantRoom {
		cards = w.missing
	}
	for i := range cards {
		all = append(all, cards[i].Bus)
	}
	return all
}

// try serves a want, or does what brings that nearer. It says whether later ones may be served now.
func (s *Server) try(w *want, now time.Time) bool {
	if w.job.order != nil || s.moving(w) {
		return false
	}
	if w.kind == wire.WantRoom && w.job.state == wire.Asleep { // its memory has to come back first; then it asks again
		s.answer(w, true, "")
		w.job.unmet = cmp.Or(w.job.unmet, w.first) // the oldest of its requests comes first
		return true
	}
	for _, c := range w.missing {
		if s.freeOn(c.Bus) < w.needs(&c) {
			return s.makeRoom(w, &c, now)
		}
	}
	if w.kind == wire.WantRoom {
		if now.After(s.turnEnd(w.job)) {
			w.job.turn = now
		}
		w.job.unmet = time.Time{}
		s.grants[w.missing[0].Bus] = grant{w.job, now.Add(grantTime)}
		s.answer(w, true, "")
		return true
	}
	const again = 100 * time.Millisecond
	if now.Sub(w.tried) < again {
		return false
	}
	w.tried, w.missing = now, nil
	w.wakes++
	s.tell(w.job, wire.Wake, 0, nil)
	return false
}

// needs returns the free bytes of a card that are enough.
func (w *want) needs(missing *wire.Card) int64 {
	if w.kind == wire.WantRoom {
		return missing.Free + missing.Away
	}
	c := w.job.card(missing.Bus)
	if c == nil {
		return 0
	}
	return c.Away
}

// moving says whether memory moves on a card that is waited for: what is free there is about to change.
func (s *Server) moving(w *want) bool {
	for _, bus := range w.buses() {
		for _, j := range s.jobs {
			if j.order != nil && j.card(bus) != nil {
				return true
			}
		}
	}
	return false
}

// freeOn returns the free bytes of a card, as it was last reported.
func (s *Server) freeOn(bus [16]byte) (free int64) {
	var at time.Time
	for _, j := range s.jobs {
		if c := j.card(bus); c != nil && c.Total > 0 && j.at.After(at) {
			free, at = c.Free, j.at
		}
	}
	return free
}

// tries is how often jobs are put to sleep in vain for a request for room before it is refused.
const tries = 3

// fresh is for how long jobs are waited for that have not reported since memory was asked for: they do so every half a second.
const fresh = 3 * time.Second

// crossing is how long a report may have been on its way.
const crossing = 100 * time.Millisecond

// endTime is how long a process may take to end.
const endTime = 10 * time.Second

// patience is how long a request for room waits for memory that others free by themselves, again and again.
const patience = 30 * time.Second

// freed is within which reports show what a process that has ended, or one that has moved memory to the host, has left free.
const freed = time.Second

// makeRoom drops shared memory that nobody uses, or else puts another job to sleep, as far as is needed, if one may be now. A request for
// room that none ever can make is refused. It says whether later wants may be served now.
func (s *Server) makeRoom(w *want, missing *wire.Card, now time.Time) bool {
	if now.Sub(s.spared[missing.Bus]) < freed { // no job has reported what that has freed
		return false
	}
	if s.dropUnused(missing.Bus) {
		s.spared[missing.Bus] = now
		return false
	}
	var found *job
	var best rank
	possible := false
	for _, j := range s.jobs {
		if j == w.job {
			continue
		}
		possible = possible || now.Sub(j.ending) < endTime || j.at.Before(w.since.Add(crossing)) && now.Sub(j.at) < fresh // it may have taken memory since
		if j.movable(missing.Bus) == 0 {
			continue
		}
		r := s.rankOf(j, now)
		if r == storing && slices.Contains(w.stores, j) {
			r = refilled
		}
		possible = possible || j.why == "" && (j.state != wire.Storing || j.failed < tries)
		if j.why == "" && r != never && now.After(j.resting) && (found == nil || r < best || r == best && s.before(j, found, now)) {
			found, best = j, r
		}
	}
	switch {
	case w.kind == wire.WantRoom && (!possible && (w.job.at.After(s.released.Add(freed)) || now.Sub(w.since) > patience) || w.vain == tries):
		s.refuseRoom(w, missing)
		return true
	case found != nil:
		need := max(w.needs(missing)-s.freeOn(missing.Bus), 1)
		if best != storing && best != refilled {
			need += w.taken
		}
		alone := len(w.buses()) == 1 && found.movable(missing.Bus) >= need
		s.sleepFor(w, found, need, missing.Bus)
		if w.kind == wire.WantWake && alone { // one leaves while the other comes
			w.wakes++
			s.tell(w.job, wire.Wake, 1, nil)
		}
	}
	return false
}

// refuseRoom says that no room can be made. Where the card seems to have it, which may have become free while the job asked, the job first tries
// once more.
func (s *Server) refuseRoom(w *want, missing *wire.Card) {
	if w.vain < tries && s.freeOn(missing.Bus) >= missing.Away && !w.job.retried.Equal(s.released) {
		w.job.retried = s.released
		s.answer(w, true, "")
		return
	}
	w.job.unmet = time.Time{}
	s.answer(w, false, "no other job of the memory server can give up memory of this card"+w.why)
}

// rank is how gladly a job is put to sleep for another.
type rank int

const (
	storing rank = iota // what it gives up nobody uses now
	asleep              // some of it is asleep already
	waiting             // it cannot go on anyway
	idle
	expired  // it has had its turn
	refilled // a store that gave up memory for this before, and may have taken it again
	never
)

func (s *Server) rankOf(j *job, now time.Time) rank {
	switch {
	case j.state == wire.Storing:
		return storing
	case j.state == wire.Asleep:
		return asleep
	case len(j.rooms) > 0:
		return waiting
	case j.idleFor(now) > pause:
		return idle
	case now.After(s.turnEnd(j)):
		return expired
	}
	return never
}

// before says whether one job of a rank is put to sleep rather than another: the store whose objects were not used for longer, or whose turn
// ended earlier.
func (s *Server) before(j, other *job, now time.Time) bool {
	if j.state == wire.Storing {
		return j.idleFor(now) > other.idleFor(now)
	}
	return s.turnEnd(j).Before(s.turnEnd(other))
}

// tell gives a job an order, of which it has none.
func (s *Server) tell(j *job, kind wire.Kind, amount int64, done chan result) {
	s.send(j, &wire.Message{Kind: kind, Amount: amount}, done)
}

// sleepFor has a job give up need bytes of a card for others.
func (s *Server) sleepFor(w *want, j *job, need int64, bus [16]byte) {
	if j.state == wire.Storing && !slices.Contains(w.stores, j) {
		w.stores = append(w.stores, j)
	}
	m := wire.Message{Kind: wire.Sleep, Amount: need}
	m.SetCards([]wire.Card{{Bus: bus}})
	s.send(j, &m, nil)
	j.order.want = w
}

// send gives a job an order.
func (s *Server) send(j *job, m *wire.Message, done chan result) {
	s.seq++
	m.Seq = s.seq
	j.order = &order{kind: m.Kind, seq: s.seq, done: done}
	if m.Kind == wire.Sleep {
		if j.state == wire.Awake && len(j.rooms) == 0 {
			j.unmet = time.Time{}
		}
		m.Pinned = s.hostFor(j)
	}
	j.send(m)
}

// hostFor returns the bytes that a job may pin, and keeps for it what it may need of them.
func (s *Server) hostFor(j *job) int64 {
	left := s.settings.Host
	for _, other := range s.jobs {
		if other != j {
			left -= max(other.pinned, other.pins)
		}
	}
	left = max(left, 0)
	j.pins = min(left, j.pinned+j.here())
	return left
}

// answer ends a request for room.
func (s *Server) answer(w *want, yes bool, why string) {
	w.job.rooms = slices.DeleteFunc(w.job.rooms, func(other *want) bool { return other == w })
	m := wire.Message{Kind: wire.Room, Seq: w.seq}
	if yes {
		m.Amount = 1
	}
	m.SetText(why)
	w.job.send(&m)
	if !yes {
		s.log(fmt.Sprintf("%s gets no room: %s", w.job, why))
	}
}

// putIdleToSleep puts those to sleep that have launched nothing for long. Half of that time before, they pin the memory for it.
func (s *Server) putIdleToSleep(now time.Time) {
	for _, j := range s.jobs {
		busy := j.state != wire.Awake || j.order != nil || j.wake != nil || len(j.rooms) > 0 || j.why != "" || j.here() == 0
		idle := j.idleFor(now)
		if s.settings.Idle == 0 || busy || idle < s.settings.Idle/2 {
			j.ready = false
			if j.order == nil {
				j.pins = 0
			}
			continue
		}
		if !j.ready {
			j.ready = true
			j.send(&wire.Message{Kind: wire.Prepare, Pinned: s.hostFor(j)})
		}
		if idle >= s.settings.Idle && now.After(j.resting) {
			s.tell(j, wire.Sleep, 0, nil)
		}
	}
}
