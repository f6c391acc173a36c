// Package server is the memory server of a machine's GPUs: it knows the jobs that gmswap run and gmstitch run have connected to it, puts
// them to sleep and wakes them, one at a time for each card, and has those that do not fit beside each other take turns. It does not use
// CUDA, and holds no memory of theirs: the jobs move it, each its own, and go on by themselves where the server ends.
//
// The idea of a server that all processes on a GPU ask for memory, and that evicts for them, is Ravenstore's (section 3). There clients
// allocate objects by name and get new handles after an eviction; here an unmodified program keeps its addresses.
package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gm/internal/swap/server/wire"
)

// Settings are those of a server.
type Settings struct {
	Idle    time.Duration    // jobs that launched nothing for so long are put to sleep; 0: none are
	Quantum time.Duration    // how long a job of weight 1 keeps its memory while others wait for it
	Weights map[string]int   // how many quanta a job of a name keeps it; 1 where there is none
	Host    int64            // bytes of the host that all jobs together may pin
	Left    int64            // the most that Host becomes with what jobs have pinned before they join, 0 for Host itself
	Quotas  map[string]int64 // bytes of each card that a job of a name may take
	Keeper  Keeper           // nil: what is shared by keys goes with the server
}

const (
	tick = 20 * time.Millisecond
	// rest is for how long a job that could not sleep is not asked again.
	rest = 2 * time.Second
	// pause is how long after its last launch a job counts as one that computes.
	pause = time.Second
	// maxConns bounds the connections, maxOfUser those of a user.
	maxConns  = 1024
	maxOfUser = 512
	// maxRate bounds the messages of a connection in a second.
	maxRate = 2000
)

// Server serves one socket.
type Server struct {
	settings Settings
	log      func(text string)

	mu       sync.Mutex
	jobs     map[int]*job // by number
	last     int
	conns    int
	seq      uint64
	released time.Time // when a job has last left, or given up memory
	grants   map[[16]byte]grant
	shares   map[shareKey]*share
	resumed  map[memoryID]bool      // what was shared before
	unkept   bool                   // the keeper may lack some of what is shared
	spared   map[[16]byte]time.Time // when unused memory of a card was last dropped
	users    map[uint32]int         // connections of each
	came     map[arrival]bool       // who has joined
}

// arrival is a process, or a store in one, that joins.
type arrival struct {
	pid   int
	state wire.State
}

// New returns a server. What it does is told to log, a line each.
func New(settings Settings, log func(text string)) *Server {
	return &Server{
		settings: settings, log: log, jobs: map[int]*job{}, grants: map[[16]byte]grant{}, shares: map[shareKey]*share{},
		resumed: map[memoryID]bool{},
		spared:  map[[16]byte]time.Time{}, users: map[uint32]int{}, came: map[arrival]bool{},
	}
}

// Serve serves until the listener is closed.
func (s *Server) Serve(l *wire.Listener) error {
	stop := make(chan struct{})
	defer close(stop)
	go s.keepTime(stop)
	for {
		c, err := l.Accept()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve jobs: %w", err)
		}
		go s.serve(c)
	}
}

// Hang hangs up on all jobs, which go on by themselves.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.conn.HangUp()
	}
}

// keepTime looks at what time alone changes.
func (s *Server) keepTime(stop <-chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			s.mu.Lock()
			s.putIdleToSleep(time.Now())
			s.schedule(time.Now())
			s.mu.Unlock()
		}
	}
}

// serve serves a connection, of a job or of gmswap ctl.
func (s *Server) serve(c *wire.Conn) {
	defer c.Close()
	pid, uid, err := c.Peer()
	if err != nil || !s.enter(uid) {
		return
	}
	defer s.leave(uid)
	if c.Expect(10*time.Second) != nil {
		return
	}
	m, err := c.Receive()
	if err != nil || c.Expect(0) != nil {
		s.refuse(c, err)
		return
	}
	switch m.Kind {
	case wire.Hello:
		s.serveJob(c, pid, uid, &m)
	case wire.List:
		s.list(c)
	case wire.CtlSleep, wire.CtlWake:
		end(c, s.control(&m, uid))
	case wire.CtlDrop:
		end(c, s.dropKey(m.TextText(), uid))
	case wire.Open:
		s.serveShare(c, pid, uid, &m)
	}
}

func (s *Server) enter(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns >= maxConns || s.users[uid] >= maxOfUser {
		return false
	}
	s.conns++
	s.users[uid]++
	return true
}

func (s *Server) leave(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns--
	if s.users[uid]--; s.users[uid] == 0 {
		delete(s.users, uid)
	}
}

// refuse tells who speaks another version.
func (s *Server) refuse(c *wire.Conn, err error) {
	if other := (*wire.VersionError)(nil); errors.As(err, &other) {
		end(c, result{err: err})
	}
}

func end(c *wire.Conn, r result) {
	m := wire.Message{Kind: wire.End, Amount: r.moved, Took: int64(r.took)}
	if r.err != nil {
		m.SetText(r.err.Error())
	}
	_ = c.Send(&m) // who is gone needs no answer
}

// follow hangs up when a process ends, until it is told to stop. Children that the process forked may hold the connection open.
func follow(pid int, c *wire.Conn) (end func()) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go watch(fd, c, stop, stopped)
	return func() {
		close(stop)
		<-stopped
	}
}

// serveJob serves a job until its process ends or hangs up.
func (s *Server) serveJob(c *wire.Conn, pid int, uid uint32, hello *wire.Message) {
	defer follow(pid, c)()
	j := s.join(c, pid, uid, hello)
	defer s.part(j)
	for since, n := time.Now(), 0; ; n++ {
		m, err := c.Receive()
		if time.Since(since) > time.Second {
			since, n = time.Now(), 0
		}
		if err != nil || n > maxRate {
			return
		}
		s.mu.Lock()
		s.handle(j, &m)
		s.schedule(time.Now())
		s.mu.Unlock()
	}
}

// watch hangs up when a process has ended.
func watch(pidfd int, c *wire.Conn, stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	defer unix.Close(pidfd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 100)
		if n > 0 || err != nil && err != unix.EINTR {
			c.HangUp()
			return
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// join adds a job.
func (s *Server) join(c *wire.Conn, pid int, uid uint32, hello *wire.Message) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	j := &job{number: s.last, conn: c, pid: pid, uid: uid, name: hello.NameText(), command: commandOf(pid), turn: time.Now()}
	j.report(hello)
	s.jobs[j.number] = j
	s.takeOver(j)
	welcome := wire.Message{Kind: wire.Welcome, Amount: s.settings.Quotas[j.name]}
	j.send(&welcome)
	s.log(fmt.Sprintf("%s joins, %s", j, j.state))
	return j
}

// takeOver has the host memory count that a job had pinned before, as under a server that has ended: it was not among what was left.
func (s *Server) takeOver(j *job) {
	a := arrival{j.pid, wire.Awake}
	if j.state == wire.Storing {
		a.state = wire.Storing
	}
	if more := j.pinned / 4 * 3; !s.came[a] {
		s.came[a] = true
		s.settings.Host = max(s.settings.Host, min(s.settings.Host+more, s.settings.Left))
	}
}

// part removes a job that has ended, or hung up.
func (s *Server) part(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.number)
	s.released = time.Now()
	j.finish()
	s.log(fmt.Sprintf("%s has left", j))
	s.schedule(time.Now())
}

// commandOf returns the command line of a process, "" if it is not known.
func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	for i, b := range text {
		if b == 0 {
			text[i] = ' '
		}
	}
	return string(text)
}
