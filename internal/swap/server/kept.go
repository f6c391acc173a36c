package server

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gm/internal/swap/server/hold"
	"gm/internal/swap/server/wire"
)

// returnTime is how long the users of memory that a server has taken over have to say that they are there. Until then it is not dropped for
// others.
const returnTime = 2 * time.Second

// Keeper keeps what is shared by keys beyond the end of the server. The server has its lock held in each call.
type Keeper interface {
	Put(r *hold.Record, fd int) error // the descriptor stays the caller's
	Remove(memory [16]byte) error
}

// Resume takes over what a former server has shared, before Serve. Processes that have it do not give it again once it was dropped.
func (s *Server) Resume(all []hold.Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := make(chan struct{})
	close(made)
	var twice []hold.Held
	for _, h := range all {
		s.resumed[h.Memory] = true
		if s.shares[shareKey{h.UID, h.Bus, h.Key}] != nil {
			twice = append(twice, h)
			continue
		}
		sh := &share{
			shareKey: shareKey{h.UID, h.Bus, h.Key}, memory: h.Memory, fd: h.FD, bytes: h.Bytes, maker: int(h.Maker),
			users: map[*wire.Conn]bool{}, left: time.Now(), spared: time.Now().Add(returnTime), made: made,
		}
		s.shares[sh.shareKey] = sh
		s.log(fmt.Sprintf("%s is shared as before: %d bytes", sh.text, sh.bytes))
	}
	for _, h := range twice {
		s.release(h.Memory)
		go unix.Close(h.FD) // of a foreign file, which may take long
		s.log(fmt.Sprintf("%s was shared twice, and is once: %d bytes are dropped", h.Key, h.Bytes))
	}
}

// preserve has memory kept beyond the server's end. Where that fails all of it is, as what the keeper had may be lost.
func (s *Server) preserve(sh *share) {
	if s.settings.Keeper == nil || !s.unkept && s.settings.Keeper.Put(sh.record(), sh.fd) == nil {
		return
	}
	s.preserveAll()
}

// preserveAll has all memory kept by a keeper that may have none of it. Where that fails the next that is shared has it tried again.
func (s *Server) preserveAll() {
	s.unkept = true
	for _, sh := range s.shares {
		if sh.fd < 0 {
			continue
		}
		if err := s.settings.Keeper.Put(sh.record(), sh.fd); err != nil {
			s.log(fmt.Sprintf("what is shared goes with the server: %v", err))
			return
		}
	}
	s.unkept = false
}

// release has memory kept no longer, which is not shared by now. Where that fails the keeper may have lost the rest, which it is given again.
func (s *Server) release(memory memoryID) {
	if s.settings.Keeper == nil {
		return
	}
	if err := s.settings.Keeper.Remove(memory); err != nil {
		s.log(err.Error())
		s.preserveAll()
	}
}

func (sh *share) record() *hold.Record {
	return &hold.Record{Memory: sh.memory, Bus: sh.bus, Bytes: sh.bytes, UID: sh.uid, Maker: int32(sh.maker), Key: sh.text}
}
