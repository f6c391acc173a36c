package main

// #include "libgm.h"
import "C"

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"gm/internal/cuda"
)

// shareTimeout is how long the two ends of a connection wait for each other.
const shareTimeout = 30 * time.Second

// shareServer gives file descriptors of pieces to processes of the same user that know its token, on a socket without a file.
type shareServer struct {
	mu    sync.Mutex
	token shareToken
}

var server shareServer

// shareToken is in the handles of a process: the first half is the name of its socket, which others can list, the second is secret.
type shareToken [32]byte

func (t *shareToken) String() string { return hex.EncodeToString(t[:]) }

func (t *shareToken) address() syscall.Sockaddr {
	return &syscall.SockaddrUnix{Name: "@gm-share-" + hex.EncodeToString(t[:16])}
}

func (t *shareToken) secret() []byte { return t[16:] }

// pieceRequest asks for a piece: the secret, the number of the device in the owner, the handle there, and the serial number.
type pieceRequest [16 + 8 + 8 + 8]byte

func newPieceRequest(t *shareToken, device int, h cuda.Handle, serial int64) (r pieceRequest) {
	copy(r[:16], t.secret())
	binary.LittleEndian.PutUint64(r[16:], uint64(device))
	binary.LittleEndian.PutUint64(r[24:], uint64(h))
	binary.LittleEndian.PutUint64(r[32:], uint64(serial))
	return r
}

func (r *pieceRequest) secret() []byte      { return r[:16] }
func (r *pieceRequest) device() int         { return int(binary.LittleEndian.Uint64(r[16:])) }
func (r *pieceRequest) handle() cuda.Handle { return cuda.Handle(binary.LittleEndian.Uint64(r[24:])) }
func (r *pieceRequest) serial() int64       { return int64(binary.LittleEndian.Uint64(r[32:])) }

// The first byte of an answer. One that is given brings a descriptor along; after one that is refused comes the reason.
const (
	pieceGiven   = 1
	pieceRefused = 2
)

// answerSize bounds an answer, in bytes.
const answerSize = 512

// start listens, once, and returns the token of this process.
func (s *shareServer) start() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if C.gm_share_socket >= 0 {
		return s.token.String(), nil
	}
	if _, err := rand.Read(s.token[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	fd, err := shareSocket()
	if err != nil {
		return "", err
	}
	if err := syscall.Bind(fd, s.token.address()); err != nil {
		return "", errors.Join(os.NewSyscallError("bind", err), syscall.Close(fd))
	}
	if err := syscall.Listen(fd, 64); err != nil {
		return "", errors.Join(os.NewSyscallError("listen", err), syscall.Close(fd))
	}
	C.gm_share_socket = C.int(fd)
	go s.serve(fd)
	return s.token.String(), nil
}

func shareSocket() (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// serve answers until the process ends.
func (s *shareServer) serve(fd int) {
	for {
		switch peer, _, err := syscall.Accept4(fd, syscall.SOCK_CLOEXEC); err {
		case nil:
			go s.answerAll(peer)
		case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK:
			return
		default: // such as a peer that is gone, or too many descriptors
			time.Sleep(time.Millisecond)
		}
	}
}

// answerAll answers the requests of one process.
func (s *shareServer) answerAll(peer int) {
	defer syscall.Close(peer)
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("share memory: BUG: %v", r)
		}
	}()
	if ownUser(peer) != nil || setTimeouts(peer) != nil {
		return
	}
	for {
		var r pieceRequest
		n, err := ignoringEINTR(func() (int, error) { return syscall.Read(peer, r[:]) })
		if err != nil || n != len(r) || subtle.ConstantTimeCompare(r.secret(), s.token.secret()) != 1 {
			return
		}
		if s.answer(peer, &r) != nil {
			return
		}
	}
}

func (s *shareServer) answer(peer int, r *pieceRequest) error {
	fd, err := exportPiece(r.device(), r.handle(), r.serial())
	if err != nil {
		text := append([]byte{pieceRefused}, err.Error()...)
		return syscall.Sendmsg(peer, text[:min(len(text), answerSize)], nil, nil, syscall.MSG_NOSIGNAL)
	}
	defer syscall.Close(fd)
	return syscall.Sendmsg(peer, []byte{pieceGiven}, syscall.UnixRights(fd), nil, syscall.MSG_NOSIGNAL)
}

// exportPiece returns a descriptor of a piece that a device of this process has.
func exportPiece(device int, h cuda.Handle, serial int64) (fd int, err error) {
	if device < 0 || device >= len(self.gpus) || self.gpus[device].Load() == nil {
		return -1, fmt.Errorf("device %d is not used", device)
	}
	self.with(device, func(g *gpu) {
		_, mapped := g.meter.Device.(mapper)
		if p, ok := g.meter.handles[h]; ok != (serial > 0) || p.serial != serial || serial == 0 && !mapped {
			fd, err = -1, errors.New("the memory was released")
			return
		}
		fd, err = g.meter.Device.(sharer).Export(h)
	})
	return fd, err
}

// ownUser returns an error if the other end of a connection is a process of another user.
func ownUser(fd int) error {
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("process %d is of another user", peer.Pid)
	}
	return nil
}

func setTimeouts(fd int) error {
	t := syscall.NsecToTimeval(int64(shareTimeout))
	return os.NewSyscallError("setsockopt", errors.Join(
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &t),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &t)))
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}
