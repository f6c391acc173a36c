package server

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"gm/internal/swap/server/wire"
)

// list sends all jobs, by number, and all shared memory.
func (s *Server) list(c *wire.Conn) {
	for _, m := range slices.Concat(s.Jobs(), s.Shares()) {
		if err := c.Send(&m); err != nil {
			return
		}
	}
	end(c, result{})
}

// Jobs returns a message of the kind Job for each job, in the order in which they joined.
func (s *Server) Jobs() (all []wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.sorted() {
		m := wire.Message{
			Kind: wire.Job, PID: int32(j.pid), UID: j.uid, State: j.state, Idle: int64(j.idleFor(time.Now())), Pinned: j.pinned,
			Amount: s.settings.Quotas[j.name],
		}
		text := j.waits()
		if j.state != wire.Storing && (j.wake != nil || len(j.rooms) > 0) {
			m.State = wire.Waiting
		}
		m.SetName(cmp.Or(j.name, j.command))
		m.SetText(cmp.Or(text, j.why))
		m.SetCards(j.cards)
		all = append(all, m)
	}
	return all
}

func (s *Server) sorted() (all []*job) {
	for _, j := range s.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.number, b.number) })
	return all
}

// control puts the jobs of a name or a process to sleep, or wakes them, and waits until that is done. Only their user, that of the server
// and root may.
func (s *Server) control(m *wire.Message, uid uint32) (all result) {
	jobs, err := s.find(m.NameText(), uid)
	if err != nil {
		return result{err: err}
	}
	for _, j := range jobs {
		var r result
		if m.Kind == wire.CtlWake {
			r = s.wake(j)
		} else {
			r = s.sleep(j, m.Amount == 1)
		}
		if r.err != nil {
			all.err = errors.Join(all.err, fmt.Errorf("%s: %w", j, r.err))
		}
		all.moved, all.took = all.moved+r.moved, all.took+r.took
	}
	return all
}

// find returns the jobs of a name, or of a process id.
func (s *Server) find(name string, uid uint32) (jobs []*job, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.sorted() {
		if j.name != name && strconv.Itoa(j.pid) != name {
			continue
		}
		if uid != j.uid && uid != 0 && int(uid) != os.Getuid() {
			return nil, fmt.Errorf("%s is of another user", j)
		}
		jobs = append(jobs, j)
	}
	if jobs == nil {
		return nil, fmt.Errorf("there is no job %s: gmswap ctl list shows them", name)
	}
	return jobs, nil
}

// sleep puts all of a job to sleep.
func (s *Server) sleep(j *job, hold bool) result {
	done := make(chan result, 1)
	for !s.begin(j, done, hold) {
		time.Sleep(tick)
	}
	return <-done
}

// begin orders a job to sleep, unless it does something else now.
func (s *Server) begin(j *job, done chan result, hold bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.jobs[j.number] == nil:
		done <- result{err: errEnded}
	case j.order != nil:
		return false
	default:
		j.held = (j.held || hold) && j.state != wire.Storing
		s.tell(j, wire.Sleep, 0, done)
	}
	return true
}

// wake has a job wake, as if a thread of it waited.
func (s *Server) wake(j *job) result {
	done := make(chan result, 1)
	s.mu.Lock()
	j.held = false
	switch {
	case s.jobs[j.number] == nil:
		done <- result{err: errEnded}
	case j.state == wire.Storing || j.state != wire.Asleep && j.order == nil && j.wake == nil:
		done <- result{}
	case j.wake == nil:
		j.wake = j.newWant(wire.WantWake)
		j.wake.done = done
	case j.wake.done == nil:
		j.wake.done = done
	default:
		done <- result{err: errors.New("it is being woken already")}
	}
	s.schedule(time.Now())
	s.mu.Unlock()
	return <-done
}
