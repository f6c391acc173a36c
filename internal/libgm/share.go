package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/park"
)

// Memory is shared by a handle, a line of text, of one of these forms:
//
//	gm1 pieces PID TOKEN DEVICE OFFSET HANDLE:SERIAL:SIZE...   pieces of physical memory, which lie one behind the other
//	gm1 ipc PID OFFSET HANDLE                           memory from cuMemAlloc
//
// The process that opens it gets the pieces as file descriptors from a socket of the owner (share_server.go). That needs no permission to
// trace the owner, which processes that are no ancestors of it do not have (Yama), and which containers forbid. All but PID is hexadecimal.
const (
	formatPieces = "gm1 pieces"
	formatIPC    = "gm1 ipc"
)

// sharer is a device whose memory can be shared with other processes.
type sharer interface {
	cuda.Device
	Shareable() bool
	Export(h cuda.Handle) (fd int, err error)
	Import(fd int, size int64) (cuda.Handle, error)
	IPCHandle(p cuda.Ptr) (driver.IPC, error)
	OpenIPC(handle driver.IPC) (cuda.Ptr, error)
	CloseIPC(p cuda.Ptr) error
	Synchronize() error
}

var _ sharer = (*driver.Device)(nil)

// mapper is a device whose MemAlloc maps physical memory. Its handles are never used again: the serial number of such a piece is 0.
type mapper interface {
	Allocated(p cuda.Ptr) (h cuda.Handle, size int64)
}

var _ mapper = (*park.Device)(nil)

var errNotShareable = errors.New("the driver does not give file descriptors for the memory of this device")

// shareHandle returns the handle of the live request that p lies in.
func (g *gpu) shareHandle(p cuda.Ptr) (string, error) {
	dev, ok := g.meter.Device.(sharer)
	if !ok {
		return "", errNotShareable
	}
	begin, size := g.base(p)
	base, x, allocated := covering(g.meter.allocs, begin)
	if mapped, ok := dev.(mapper); allocated && ok {
		h, bytes := mapped.Allocated(base)
		return g.pieces(fmt.Sprintf(" %x:0:%x", uint64(h), bytes), p-base)
	}
	if allocated {
		handle, err := dev.IPCHandle(base)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %d %x %x", formatIPC, os.Getpid(), p-base, handle[:]), nil
	}
	if base, x, ok = covering(g.meter.mapped, begin); !ok {
		return "", fmt.Errorf("nothing is mapped at %#x", begin)
	}
	if !dev.Shareable() {
		return "", errNotShareable
	}
	var text strings.Builder
	for at := base; at < begin+cuda.Ptr(size); at += cuda.Ptr(x.size) {
		if x, ok = g.meter.mapped[at]; !ok {
			return "", fmt.Errorf("nothing is mapped at %#x", at)
		}
		fmt.Fprintf(&text, " %x:%x:%x", uint64(x.handle), g.meter.handles[x.handle].serial, x.size)
	}
	return g.pieces(text.String(), p-base)
}

// pieces returns the handle of memory at an offset in pieces.
func (g *gpu) pieces(list string, offset cuda.Ptr) (string, error) {
	token, err := server.start()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %s %x %x%s", formatPieces, os.Getpid(), token, g.ordinal, offset, list), nil
}

// covering returns the memory that an address lies in.
func covering(extents map[cuda.Ptr]extent, p cuda.Ptr) (cuda.Ptr, extent, bool) {
	for base, x := range extents {
		if p >= base && p < base+cuda.Ptr(x.size) {
			return base, x, true
		}
	}
	return 0, extent{}, false
}

//export go_knows_within
func go_knows_within(device C.int, p C.uint64_t) (known C.bool) {
	defer guard(device)
	base, _ := self.gpu(device).base(cuda.Ptr(p))
	return base != 0
}

//export go_share
func go_share(device C.int, p C.uint64_t, to *C.char, room C.size_t) (n C.size_t) {
	defer guard(device)
	text, err := self.gpu(device).shareHandle(cuda.Ptr(p))
	if err != nil {
		fail(fmt.Sprintf("The memory at %#x cannot be shared: %v.", uint64(p), err))
		return 0
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(to)), min(room, C.size_t(len(text)))), text)
	return C.size_t(len(text))
}
