package server

import (
	"cmp"
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
	fd    int // -1 while it is being made
	bytes int64
	maker int // a process
	uses  int // connections
	left  time.Time
	made  chan struct{} // closed once it is made, or its maker has given up
}

type shareKey struct {
	uid  uint32
	bus  [16]byte
	text string
}

// serveShare serves a process that opens a key, until it ends its use of it.
func (s *Server) serveShare(c *wire.Conn, pid int, uid uint32, m *wire.Message) {
	key := shareKey{uid, m.Cards[0].Bus, m.TextText()}
	if key.text == "" || m.Count != 1 {
		end(c, result{err: errors.New("a key has at least a byte, and is of a card")})
		return
	}
	defer follow(pid, c)()
	sh, making, err := s.openShare(key, pid)
	if err != nil {
		end(c, result{err: err})
		return
	}
	defer s.leaveShare(sh)
	if err := s.give(c, sh); err != nil {
		return
	}
	if making && s.keep(c, sh) != nil {
		return
	}
	_, _ = c.Receive() // nothing more is said: this is the end of the use
}

// openShare returns the memory of a key. Where there is none the caller is to make it; while another does, this waits for that.
func (s *Server) openShare(key shareKey, pid int) (sh *share, making bool, err error) {
	for {
		s.mu.Lock()
		sh = s.shares[key]
		if sh == nil {
			defer s.mu.Unlock()
			if n := s.sharesOf(key.uid); n >= maxShares {
				return nil, false, fmt.Errorf("there are %d keys of this user already", n)
			}
			sh = &share{shareKey: key, fd: -1, maker: pid, uses: 1, made: make(chan struct{})}
			s.shares[key] = sh
			return sh, true, nil
		}
		if sh.fd >= 0 {
			defer s.mu.Unlock()
			sh.uses++
			return sh, false, nil
		}
		s.mu.Unlock()
		<-sh.made
	}
}

func (s *Server) sharesOf(uid uint32) (n int) {
	for key := range s.shares {
		if key.uid == uid {
			n++
		}
	}
	return n
}

// give answers who opened a key. The descriptor that is sent is a copy: the memory may be dropped meanwhile.
func (s *Server) give(c *wire.Conn, sh *share) error {
	s.mu.Lock()
	m, fd := wire.Message{Kind: wire.Given, Amount: sh.bytes}, -1
	var err error
	if sh.fd >= 0 {
		fd, err = unix.FcntlInt(uintptr(sh.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	s.mu.Unlock()
	if err != nil {
		end(c, result{err: fmt.Errorf("copy a descriptor: %w", err)})
		return err
	}
	if fd < 0 {
		return c.Send(&m)
	}
	defer unix.Close(fd)
	return c.SendFile(&m, fd)
}

// keep takes the memory of a key from the process that makes it. An error means that there is none, which that process was told.
func (s *Server) keep(c *wire.Conn, sh *share) error {
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
func (s *Server) leaveShare(sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.uses--
	sh.left = time.Now()
	if sh.fd < 0 && s.shares[sh.shareKey] == sh {
		delete(s.shares, sh.shareKey)
		close(sh.made)
	}
}

// drop forgets memory, which is free once nobody has it mapped.
func (s *Server) drop(sh *share) {
	delete(s.shares, sh.shareKey)
	s.log(fmt.Sprintf("%s is no longer shared: %d bytes", sh.text, sh.bytes))
	go unix.Close(sh.fd) // of a foreign file, which may take long
}

// dropUnused forgets what nobody has used for longest, for others that need memory of a card. It returns false if there is none.
func (s *Server) dropUnused(bus [16]byte) bool {
	var found *share
	for _, sh := range s.shares {
		if sh.bus == bus && sh.fd >= 0 && sh.uses == 0 && (found == nil || sh.left.Before(found.left)) {
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
		m := wire.Message{Kind: wire.Shared, PID: int32(sh.maker), UID: key.uid, Amount: int64(sh.uses)}
		m.SetText(key.text)
		m.SetCards([]wire.Card{{Bus: key.bus, Here: sh.bytes}})
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b wire.Message) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.TextText(), b.TextText()), cmp.Compare(a.Cards[0].BusText(), b.Cards[0].BusText()))
	})
	return all
}
