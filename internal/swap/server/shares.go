package server

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gm/internal/swap/server/wire"
)

// maxShares bounds the keys of a user.
const maxShares = 256

// share is memory of a card that processes of a user have by a key. The descriptor keeps it: the process that made it may end. The lock of
// the server guards it.
type share struct {
	shareKey
	memory memoryID
	fd     int // -1 while it is being made
	bytes  int64
	maker  int                 // a process
	users  map[*wire.Conn]bool // true: it has the memory, and is told when that is dropped
	left   time.Time
	spared time.Time     // it is not dropped for others before
	made   chan struct{} // closed once it is made, or its maker has given up
}

type shareKey struct {
	uid  uint32
	bus  [16]byte
	text string
}

// memoryID tells memory from all other memory, of the same key and of others.
type memoryID [16]byte

// serveShare serves a process that opens a key, until it ends its use of it.
func (s *Server) serveShare(c *wire.Conn, pid int, uid uint32, m *wire.Message) {
	key := shareKey{uid, m.Cards[0].Bus, m.TextText()}
	if key.text == "" || m.Count != 1 {
		end(c, result{err: errors.New("a key has at least a byte, and is of a card")})
		return
	}
	defer follow(pid, c)()
	sh, fd, err := s.openShare(c, key, m.Memory, pid)
	if err != nil {
		end(c, result{err: err})
		return
	}
	defer s.leaveShare(c, sh)
	if fd == toMake {
		err = s.keep(c, sh)
	} else {
		err = give(c, sh, fd)
	}
	if err == nil && s.hasGot(c, sh) {
		_, _ = c.Receive() // nothing more is said: this is the end of the use
	}
}

// What openShare returns instead of a descriptor.
const (
	toMake = -1 // the process is to send the memory
	hasIt  = -2 // the process has it
)

// openShare returns the memory of a key with a copy of its descriptor, as it may be dropped meanwhile; or that which is named, of a server
// that has ended. While a process makes it, or sends what it has, this waits for that.
func (s *Server) openShare(c *wire.Conn, key shareKey, named memoryID, pid int) (sh *share, fd int, err error) {
	for {
		s.mu.Lock()
		sh = s.shares[key]
		if sh == nil {
			defer s.mu.Unlock()
			sh, err = s.newShare(key, named, pid)
			if err == nil {
				sh.users[c] = false
			}
			return sh, toMake, err
		}
		if sh.fd >= 0 || named != (memoryID{}) && named != sh.memory {
			defer s.mu.Unlock()
			fd, err = sh.open(named)
			if err == nil {
				sh.users[c] = false
			}
			return sh, fd, err
		}
		s.mu.Unlock()
		<-sh.made
	}
}

// open returns a copy of the descriptor for a process that has not named the memory.
func (sh *share) open(named memoryID) (fd int, err error) {
	switch named {
	case sh.memory:
		return hasIt, nil
	case memoryID{}:
		if fd, err = unix.FcntlInt(uintptr(sh.fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return -1, fmt.Errorf("copy a descriptor: %w", err)
		}
		return fd, nil
	}
	return -1, fmt.Errorf("other memory is shared as %s by now", sh.text)
}

// newShare adds a key of which there is no memory yet.
func (s *Server) newShare(key shareKey, memory memoryID, pid int) (*share, error) {
	if s.resumed[memory] {
		return nil, errDropped
	}
	n := 0
	for other, sh := range s.shares {
		if other.uid == key.uid {
			n++
		}
		if sh.memory == memory {
			return nil, fmt.Errorf("this memory is shared as %s", other.text)
		}
	}
	if n >= maxShares {
		return nil, fmt.Errorf("there are %d keys of this user already", n)
	}
	if memory == (memoryID{}) {
		_, _ = rand.Read(memory[:]) // it does not fail
	}
	sh := &share{shareKey: key, memory: memory, fd: -1, maker: pid, users: map[*wire.Conn]bool{}, made: make(chan struct{})}
	s.shares[key] = sh
	return sh, nil
}

// give answers who opened memory that is there.
func give(c *wire.Conn, sh *share, fd int) error {
	m := wire.Message{Kind: wire.Given, Memory: sh.memory, Amount: sh.bytes}
	if fd == hasIt {
		return c.Send(&m)
	}
	defer unix.Close(fd)
	return c.SendFile(&m, fd)
}

// hasGot notes that a process has the memory. It returns false if that was dropped meanwhile, which the process is told.
func (s *Server) hasGot(c *wire.Conn, sh *share) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares[sh.shareKey] != sh {
		tellDropped(c)
		return false
	}
	sh.users[c] = true
	return true
}

// keep takes the memory of a key from the process that makes it, or has it. An error means that there is none, which that process was told.
func (s *Server) keep(c *wire.Conn, sh *share) error {
	if err := c.Send(&wire.Message{Kind: wire.Given, Memory: sh.memory}); err != nil {
		return err
	}
	m, fd, err := c.ReceiveFile()
	if err == nil && (m.Kind != wire.Keep || m.Amount == 0 || fd < 0) {
		err = errors.New("the memory of a key is a number of bytes and a descriptor")
	}
	if err == nil {
		err = isMemory(fd)
	}
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd) // it is of no use
		}
		end(c, result{err: err})
		return err
	}
	s.mu.Lock()
	sh.fd, sh.bytes = fd, m.Amount
	s.preserve(sh)
	close(sh.made)
	s.mu.Unlock()
	s.log(fmt.Sprintf("process %d shares %d bytes as %s", sh.maker, sh.bytes, sh.text))
	end(c, result{})
	return nil
}

// isMemory refuses what is certainly no memory of a card, and could hold up who closes it or keep sockets alive.
func isMemory(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("look at a descriptor: %w", err)
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFSOCK, unix.S_IFIFO, unix.S_IFDIR, unix.S_IFBLK, unix.S_IFLNK:
		return errors.New("the descriptor is not that of memory of a card")
	}
	return nil
}

// leaveShare ends a use. If that was to make the memory, and there is none, the next who opens the key is to.
func (s *Server) leaveShare(c *wire.Conn, sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(sh.users, c)
	sh.left = time.Now()
	if sh.fd < 0 && s.shares[sh.shareKey] == sh {
		delete(s.shares, sh.shareKey)
		close(sh.made)
	}
}

// drop forgets memory, which is free once nobody has it mapped. Its users are told first, as they would give it to the next server.
func (s *Server) drop(sh *share) {
	for c, has := range sh.users {
		if has {
			tellDropped(c)
		}
	}
	delete(s.shares, sh.shareKey)
	s.release(sh.memory)
	s.log(fmt.Sprintf("%s is no longer shared: %d bytes", sh.text, sh.bytes))
	go unix.Close(sh.fd) // of a foreign file, which may take long
}

var errDropped = errors.New("it is no longer shared")

// tellDropped ends the use of memory that was dropped. It does not wait: next to nothing was sent before.
func tellDropped(c *wire.Conn) {
	end(c, result{err: errDropped})
	c.HangUp()
}

// dropUnused forgets what nobody has used for longest, for others that need memory of a card. It returns false if there is none.
func (s *Server) dropUnused(bus [16]byte) bool {
	var found *share
	now := time.Now()
	for _, sh := range s.shares {
		if sh.bus == bus && sh.fd >= 0 && len(sh.users) == 0 && now.After(sh.spared) && (found == nil || sh.left.Before(found.left)) {
			found = sh
		}
	}
	if found == nil {
		return false
	}
	s.drop(found)
	return true
}

// dropKey forgets the memory of a key on all cards. Only its user, that of the server and root may.
func (s *Server) dropKey(text string, uid uint32) (r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sh := range s.shares {
		if text != key.text || sh.fd < 0 || uid != key.uid && uid != 0 && int(uid) != os.Getuid() {
			continue
		}
		r.moved += sh.bytes
		s.drop(sh)
	}
	if r.moved == 0 {
		r.err = fmt.Errorf("nothing of yours is shared as %s: gmswap ctl list shows what is", text)
	}
	return r
}

// Shares returns a message of the kind Shared for each key that has memory, by user and key.
func (s *Server) Shares() (all []wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sh := range s.shares {
		if sh.fd < 0 {
			continue
		}
		m := wire.Message{Kind: wire.Shared, PID: int32(sh.maker), UID: key.uid, Amount: int64(len(sh.users))}
		m.SetText(key.text)
		m.SetCards([]wire.Card{{Bus: key.bus, Here: sh.bytes}})
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b wire.Message) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.TextText(), b.TextText()), cmp.Compare(a.Cards[0].BusText(), b.Cards[0].BusText()))
	})
	return all
}
