package main

// #include "libgm.h"
import "C"

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/retry"
)

// maxHandle bounds a handle, in bytes: a gigabyte in pieces of 2 MiB takes about 10 KiB.
const maxHandle = 8 << 20

// imports is the memory of other processes that is mapped here. Each is mapped once on a device.
type imports struct {
	mu     sync.Mutex
	opened map[importKey]*imported
	frees  [C.GM_DEVICES]*retry.Device // undoes mappings, also those that the driver refuses to undo at first
}

// importKey is a handle without its offset.
type importKey struct {
	device int
	memory string
}

// imported is memory of another process. Without uses it is unmapped as soon as that is possible.
type imported struct {
	base cuda.Ptr
	size int64 // 0 if it is not known
	uses map[cuda.Ptr]int
	ipc  bool
}

var received = imports{opened: map[importKey]*imported{}}

// sharedHandle is a handle that was read.
type sharedHandle struct {
	memory string // without the offset
	offset int64
	pid    int

	ipc *driver.IPC // nil for pieces

	token  shareToken
	device int // in the owner
	pieces []sharedPiece
	size   int64
}

type sharedPiece struct {
	handle cuda.Handle
	piece
}

var errHandle = errors.New("this is no handle of gm_share")

// readHandle reads what shareHandle wrote.
func readHandle(text string) (*sharedHandle, error) {
	words := strings.Split(text, " ")
	if len(text) > maxHandle || len(words) < 5 {
		return nil, errHandle
	}
	h := new(sharedHandle)
	pid, err := strconv.Atoi(words[2])
	if err != nil {
		return nil, errHandle
	}
	h.pid = pid
	switch words[0] + " " + words[1] {
	case formatIPC:
		err = h.readIPC(words[3:])
	case formatPieces:
		err = h.readPieces(words[3:])
	default:
		err = errHandle
	}
	return h, err
}

func (h *sharedHandle) readIPC(words []string) error {
	if len(words) != 2 || len(words[1]) != 2*len(h.ipc) {
		return errHandle
	}
	h.ipc, h.memory = new(driver.IPC), words[1]
	offset, err := strconv.ParseInt(words[0], 16, 64)
	if _, bad := hex.Decode(h.ipc[:], []byte(words[1])); err != nil || bad != nil || offset < 0 {
		return errHandle
	}
	h.offset = offset
	return nil
}

func (h *sharedHandle) readPieces(words []string) error {
	if len(words) < 4 || len(words[0]) != 2*len(h.token) {
		return errHandle
	}
	_, bad := hex.Decode(h.token[:], []byte(words[0]))
	device, err := strconv.ParseUint(words[1], 16, 8)
	offset, err2 := strconv.ParseInt(words[2], 16, 64)
	if errors.Join(bad, err, err2) != nil {
		return errHandle
	}
	h.device, h.offset = int(device), offset
	for _, word := range words[3:] {
		p, err := readPiece(word)
		if err != nil || h.size > 1<<48 {
			return errHandle
		}
		h.pieces = append(h.pieces, p)
		h.size += p.size
	}
	if offset < 0 || offset >= h.size {
		return errHandle
	}
	h.memory = words[0] + " " + words[1] + " " + strings.Join(words[3:], " ")
	return nil
}

func readPiece(word string) (p sharedPiece, err error) {
	numbers := strings.Split(word, ":")
	if len(numbers) != 3 {
		return p, errHandle
	}
	handle, err := strconv.ParseUint(numbers[0], 16, 64)
	serial, err2 := strconv.ParseInt(numbers[1], 16, 64)
	size, err3 := strconv.ParseInt(numbers[2], 16, 48)
	if errors.Join(err, err2, err3) != nil || size <= 0 || size%cuda.Granularity != 0 {
		return p, errHandle
	}
	return sharedPiece{cuda.Handle(handle), piece{size, serial}}, nil
}

// open returns where the memory of a handle is, on a device that is open.
func (m *imports) open(device int, text string) (cuda.Ptr, error) {
	h, err := readHandle(text)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := importKey{device, h.memory}
	i := m.opened[key]
	if i == nil {
		m.sweep()
		if i, err = m.importMemory(device, h); err != nil {
			return 0, fmt.Errorf("the memory of process %d: %w", h.pid, err)
		}
		m.opened[key] = i
	}
	p := i.base + cuda.Ptr(h.offset)
	i.uses[p]++
	return p, nil
}

// device returns a device, and what undoes its mappings.
func (m *imports) device(ordinal int) (sharer, *retry.Device, error) {
	g := self.gpus[ordinal].Load()
	dev, ok := g.meter.Device.(sharer)
	if !ok {
		return nil, nil, errNotShareable
	}
	if m.frees[ordinal] == nil {
		m.frees[ordinal] = retry.New(dev, g.complain)
	}
	return dev, m.frees[ordinal], nil
}

func (m *imports) importMemory(ordinal int, h *sharedHandle) (*imported, error) {
	dev, frees, err := m.device(ordinal)
	if err != nil {
		return nil, err
	}
	i := &imported{size: h.size, uses: map[cuda.Ptr]int{}, ipc: h.ipc != nil}
	if i.ipc {
		i.base, err = dev.OpenIPC(*h.ipc)
		return i, err
	}
	if i.base, err = dev.AddressReserve(h.size); err != nil {
		return nil, err
	}
	mapped, err := importPieces(dev, frees, i.base, h)
	if err == nil {
		err = dev.SetAccess(i.base, h.size)
	}
	if err == nil {
		return i, nil
	}
	if mapped > 0 {
		err = errors.Join(err, frees.Unmap(i.base, mapped))
	}
	return nil, errors.Join(err, frees.AddressFree(i.base, h.size))
}

// importPieces maps pieces of another process at an address, and returns the bytes that it has mapped.
func importPieces(dev sharer, frees *retry.Device, p cuda.Ptr, h *sharedHandle) (mapped int64, err error) {
	fd, err := connectTo(&h.token)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	for _, piece := range h.pieces {
		if err := importPiece(dev, frees, fd, p+cuda.Ptr(mapped), h, piece); err != nil {
			return mapped, err
		}
		mapped += piece.size
	}
	return mapped, nil
}

// importPiece maps one piece. Its mapping keeps the memory.
func importPiece(dev sharer, frees *retry.Device, socket int, p cuda.Ptr, h *sharedHandle, piece sharedPiece) error {
	fd, err := requestPiece(socket, newPieceRequest(&h.token, h.device, piece.handle, piece.serial))
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	handle, err := dev.Import(fd, piece.size)
	if err != nil {
		return err
	}
	return errors.Join(dev.Map(p, handle), frees.Release(handle))
}

// connectTo returns a connection to the owner of a token.
func connectTo(t *shareToken) (int, error) {
	fd, err := shareSocket()
	if err != nil {
		return -1, err
	}
	err = setTimeouts(fd)
	if err == nil {
		if err = os.NewSyscallError("connect", connect(fd, t.address())); errors.Is(err, syscall.ECONNREFUSED) {
			err = errors.New("it has ended, or is in another network namespace")
		}
	}
	if err == nil {
		err = ownUser(fd)
	}
	if err != nil {
		return -1, errors.Join(err, syscall.Close(fd))
	}
	return fd, nil
}

func connect(fd int, to syscall.Sockaddr) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, syscall.Connect(fd, to) })
	return err
}

// requestPiece returns the descriptor that the owner answers with.
func requestPiece(socket int, r pieceRequest) (int, error) {
	if err := syscall.Sendmsg(socket, r[:], nil, nil, syscall.MSG_NOSIGNAL); err != nil {
		return -1, os.NewSyscallError("sendmsg", err)
	}
	var text [answerSize]byte
	rights := make([]byte, syscall.CmsgSpace(4))
	var control int
	n, err := ignoringEINTR(func() (n int, err error) {
		n, control, _, _, err = syscall.Recvmsg(socket, text[:], rights, syscall.MSG_CMSG_CLOEXEC)
		return n, err
	})
	switch {
	case err != nil:
		return -1, os.NewSyscallError("recvmsg", err)
	case n > 0 && text[0] == pieceRefused:
		return -1, errors.New(string(text[1:n]))
	case n != 1 || text[0] != pieceGiven:
		return -1, errors.New("it does not answer")
	}
	return descriptorIn(rights[:control])
}

func descriptorIn(control []byte) (int, error) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err == nil && len(messages) == 1 {
		var fds []int
		if fds, err = syscall.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.Join(errors.New("the descriptor did not come: too many files may be open"), err)
}

// close ends one use of an address.
func (m *imports) close(p cuda.Ptr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.opened {
		if n := i.uses[p]; n > 1 {
			i.uses[p]--
			return
		} else if n == 1 {
			delete(i.uses, p)
			m.sweep()
			return
		}
	}
	self.log.printf("%#x is not shared memory that is open", p)
}

// sweep unmaps what is not used. The work of the device may still use it, so it waits for that; during a capture it leaves it.
func (m *imports) sweep() {
	for key, i := range m.opened {
		if len(i.uses) == 0 && m.unmap(key.device, i) {
			delete(m.opened, key)
		}
	}
}

// unmap undoes a mapping unless that is not possible now.
func (m *imports) unmap(ordinal int, i *imported) bool {
	capturing := false
	self.with(ordinal, func(g *gpu) { capturing = g.meter.capturing })
	dev, frees, err := m.device(ordinal)
	if capturing || err != nil {
		return false
	}
	if err := dev.Synchronize(); err != nil && !errors.Is(err, driver.ErrShutdown) {
		return false
	}
	if i.ipc {
		return dev.CloseIPC(i.base) == nil
	}
	return errors.Join(frees.Unmap(i.base, i.size), frees.AddressFree(i.base, i.size)) == nil
}

// settle unmaps what is not used, and what could not be unmapped before.
func (m *imports) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	for _, frees := range m.frees {
		if frees != nil {
			frees.Settle()
		}
	}
}

//export go_settle_shared
func go_settle_shared() {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("close shared memory: BUG: %v", r)
		}
	}()
	received.settle()
}

//export go_open_shared
func go_open_shared(device C.int, handle *C.char, n C.size_t) (p C.uint64_t) {
	defer func() { // the allocator of the device has no part in it, and its lock is not held
		if r := recover(); r != nil {
			fail(fmt.Sprint("BUG: ", r))
			self.log.printf("open shared memory: BUG: %v", r)
			p = 0
		}
	}()
	text := C.GoStringN(handle, C.int(min(n, maxHandle+1)))
	at, err := received.open(int(device), text)
	if err != nil {
		fail(fmt.Sprintf("Shared memory cannot be opened: %v.", err))
	}
	return C.uint64_t(at)
}

//export go_close_shared
func go_close_shared(p C.uint64_t) {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("close shared memory: BUG: %v", r)
		}
	}()
	received.close(cuda.Ptr(p))
}
